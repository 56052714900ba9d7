"""Rota's engine beside its peers in one run.

    python -m bench.engine [--quick] [--only drain,latency] [--store postgres] [--json FILE]    (--help shows all)

What is measured, and how to read it, is in bench/README.md.
"""

import argparse
import asyncio
import contextlib
import json
import os
import platform
import re
import signal
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar, get_args

from bench.engine.parts import growth, queues, schedules, state
from bench.engine.plan import FULL, MEASURES, QUEUES, QUICK, SCHEDULERS, Sizes, names_of
from bench.engine.process import ROOT, Failed
from bench.engine.results import Results
from bench.engine.stores import StoreName, Stores, Synchronous, started

import rota

C = TypeVar("C")


async def compare(options: argparse.Namespace, sizes: Sizes, results: Results) -> dict[str, Any]:
    """Measure everybody, round by round, in an order that turns; returns the settings of the servers."""
    names: list[StoreName] = [options.store] if options.store else list(get_args(StoreName))
    wanted = chosen(options.only)
    servers = {"postgres"} & set(names)
    if "postgres" in names and not options.alone and wanted & names_of("schedules"):
        servers.add("redis")  # celery's
    os.environ["ROTA_BENCH_SYNCHRONOUS"] = options.synchronous  # for the contestants
    async with started(servers, options.synchronous) as stores:
        for number in range(sizes.rounds):
            say(f"round {number + 1} of {sizes.rounds}")
            for name in names:
                await one_round(stores, name, number, options.alone, sizes, wanted, results)
        if wanted & names_of("many schedules"):
            with timed("many schedules"):
                await growth.measure(stores, names, not options.alone, sizes, wanted, results)
        return stores.settings


async def one_round(
    stores: Stores, name: StoreName, number: int, alone: bool, sizes: Sizes, wanted: set[str], results: Results
) -> None:
    if wanted & names_of("queue"):
        for queue in turned([each for each in QUEUES[name] if not alone or each.name == "rota"], number):
            with timed(f"{name}: queue of {queue.name}"):
                await queues.measure(stores, name, queue, sizes, wanted, results)
    if wanted & names_of("schedules"):
        for scheduler in turned([each for each in SCHEDULERS[name] if not alone or each.name == "rota"], number):
            with timed(f"{name}: schedules of {scheduler.name}"):
                await schedules.measure(stores, name, scheduler, sizes, wanted, results)
    if wanted & names_of("state"):
        with timed(f"{name}: locks and state"):
            await state.measure(stores, name, sizes, wanted, results)


def turned(contestants: Sequence[C], number: int) -> list[C]:
    """Return the contestants with another one first in each round."""
    start = number % len(contestants)
    return [*contestants[start:], *contestants[:start]]


def chosen(only: str | None) -> set[str]:
    """Return the measures that a list of words names; all, if there is none."""
    if only is None:
        return set(MEASURES)
    found = {name for name in MEASURES for word in only.split(",") if word.strip() in name}
    if not found:
        sys.exit(f"bench: nothing is called {only}; there are: {', '.join(MEASURES)}")
    return found


def versions() -> dict[str, str]:
    """Return what requirements/ pins of the peers."""
    names = {each.name for several in (*QUEUES.values(), *SCHEDULERS.values()) for each in several} - {"rota"}
    found = {"rota": rota.__version__}
    for name in sorted(names):
        pins = (ROOT / "requirements" / f"peer-{name}.txt").read_text()
        pinned = re.search(rf"^{name}==(\S+)", pins, re.MULTILINE)
        found[name] = pinned[1] if pinned else "?"
    return found


def report(options: argparse.Namespace, sizes: Sizes, results: Results, settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "quick": options.quick,
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "load": os.getloadavg(),
        "versions": versions(),
        "settings": settings,
        "sizes": asdict(sizes),
        "results": results.json(),
    }


@contextlib.contextmanager
def timed(words: str) -> Iterator[None]:
    begun = monotonic()
    yield
    say(f"{words}, {monotonic() - begun:.1f} s")


def say(words: str) -> None:
    print(f"bench: {words}", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench engine", description="Rota's engine beside its peers.")
    parser.add_argument("--quick", action="store_true", help="small sizes and two rounds: under 3 minutes")
    parser.add_argument("--only", metavar="WORD,...", help="measures whose names contain one of these words")
    parser.add_argument("--store", choices=get_args(StoreName), help="one store; both if left out")
    parser.add_argument("--alone", action="store_true", help="Rota without its peers")
    parser.add_argument(
        "--synchronous",
        choices=get_args(Synchronous),
        default="normal",
        help="how SQLite syncs: normal for everybody, full for everybody, or as everybody does by himself",
    )
    parser.add_argument("--rounds", type=int, help="how often to measure everybody")
    parser.add_argument("--scale", type=float, default=1.0, help="a factor for all sizes: to test the benchmark")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where to write the numbers; else bench/results/")
    options = parser.parse_args()
    sizes = (QUICK if options.quick else FULL).scaled(options.scale)
    if options.rounds:
        sizes = Sizes(**{**asdict(sizes), "rounds": options.rounds})
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # stops the servers too
    results, begun = Results(), monotonic()
    try:
        settings = asyncio.run(compare(options, sizes, results))
    except Failed as error:
        sys.exit(f"bench: {error}")
    except KeyboardInterrupt:
        sys.exit("bench: stopped")
    path = options.json or ROOT / "bench" / "results" / f"engine-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report(options, sizes, results, settings), indent=2) + "\n")
    print(results.table())
    print(", ".join(f"{name} {value}" for name, value in {**versions(), **settings}.items()))
    say(f"{monotonic() - begun:.0f} s; the numbers are in {path}")


if __name__ == "__main__":
    main()
