"""How long Rota takes to answer "when next?", beside cronsim, croniter and APScheduler in the same run.

    python bench/times.py [--quick] [--json FILE]

What is measured, and how to read it, is in bench/README.md.
"""

import argparse
import gc
import json
import os
import platform
import statistics
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from time import process_time
from types import ModuleType
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import rota

LIMIT = 50.0
"""What the worst answer may take, in milliseconds."""

ZONES: dict[str, tzinfo] = {"UTC": UTC, "America/New_York": ZoneInfo("America/New_York")}
TICK = timedelta(microseconds=1)
START = datetime(2026, 3, 7, 12, tzinfo=UTC)  # the day before New York's clocks go forward

Ask = Callable[[], object]


class Library(NamedTuple):
    """One library: how it is asked once, and how it is asked for one instant after another."""

    name: str
    package: str
    first: Callable[[str, str, datetime], datetime | None]
    steps: Callable[[str, str, datetime, int], Callable[[], list[datetime]]]


class Question(NamedTuple):
    """A kind of schedule: its usual expression, as many different ones as are wanted, and how many instants to list."""

    name: str
    usual: str
    different: Callable[[int], str]
    instants: int


def dense(n: int) -> str:
    return f"{n % 15},{15 + n // 15 % 15},{30 + n // 225 % 15},{45 + n // 3375 % 15} * * * *"


def time_of_day(n: int) -> str:
    return f"{n * 7 % 60} {n // 60 % 24}"


QUESTIONS = (
    Question("dense", "*/15 * * * *", dense, 100),
    Question("daily", "0 9 * * *", lambda n: f"{time_of_day(n)} * * *", 100),
    Question("weekly", "0 9 * * MON", lambda n: f"{time_of_day(n)} * * MON", 100),
    Question("leap day", "0 0 29 2 *", lambda n: f"{time_of_day(n)} 29 2 *", 40),  # until 2199 there are no 100
)

NASTY = (
    *(
        "30 2 29 2 1",
        "0 0 29 2 MON#5",
        "* * * * * *",
        "0 0 31 12 *",
        "0 0 L * *",
        "0 0 LW * *",
        "0 0 LW 2 *",
        "0 0 29 2 *",
    ),
    *("0 0 * 2 7#5", "59 59 23 31 12 *", "*/7 */5 */3 */2 *", "0 0 30 DEC *"),
)
NASTY_ZONES = ("UTC", "America/New_York", "Pacific/Apia", "Africa/Casablanca", "Australia/Lord_Howe")
FIRST, LAST = datetime(1970, 1, 1, tzinfo=UTC), datetime(2099, 12, 31, 23, 59, 59, tzinfo=UTC)


def libraries() -> list[Library]:
    """Return Rota and its peers; the first peer that is missing ends the run."""
    found = [Library("rota", "rota", rota_first, rota_steps)]
    for package, make in (("cronsim", with_cronsim), ("croniter", with_croniter), ("apscheduler", with_apscheduler)):
        try:
            version(package)
            found.append(make(import_module("apscheduler.triggers.cron" if package == "apscheduler" else package)))
        except (ImportError, PackageNotFoundError):
            sys.exit(f"bench/times.py: {package} is missing: pip install -r requirements/peers.txt")
    return found


def rota_first(expr: str, zone: str, after: datetime) -> datetime | None:
    return rota.Cron(expr, tz=zone).next(after)


def rota_steps(expr: str, zone: str, after: datetime, instants: int) -> Callable[[], list[datetime]]:
    rule = rota.Cron(expr, tz=zone)
    return lambda: rule.upcoming(after, instants)


def with_cronsim(module: ModuleType) -> Library:
    def first(expr: str, _: str, after: datetime) -> datetime:
        found: datetime = next(module.CronSim(expr, after))
        return found

    def steps(expr: str, _: str, after: datetime, instants: int) -> Callable[[], list[datetime]]:
        found = module.CronSim(expr, after)
        return lambda: [next(found) for _ in range(instants)]

    return Library("cronsim", "cronsim", first, steps)


def with_croniter(module: ModuleType) -> Library:
    def first(expr: str, _: str, after: datetime) -> datetime:
        found: datetime = module.croniter(expr, after).get_next(datetime)
        return found

    def steps(expr: str, _: str, after: datetime, instants: int) -> Callable[[], list[datetime]]:
        found = module.croniter(expr, after)
        return lambda: [found.get_next(datetime) for _ in range(instants)]

    return Library("croniter", "croniter", first, steps)


def with_apscheduler(module: ModuleType) -> Library:
    def first(expr: str, zone: str, after: datetime) -> datetime | None:
        trigger = module.CronTrigger.from_crontab(expr, timezone=ZONES[zone])
        found: datetime | None = trigger.get_next_fire_time(None, after + TICK)
        return found

    def steps(expr: str, zone: str, after: datetime, instants: int) -> Callable[[], list[datetime]]:
        trigger = module.CronTrigger.from_crontab(expr, timezone=ZONES[zone])

        def listed() -> list[datetime]:
            found = [trigger.get_next_fire_time(None, after + TICK)]
            while len(found) < instants:
                found.append(trigger.get_next_fire_time(found[-1], found[-1]))
            return found

        return listed

    return Library("apscheduler", "apscheduler", first, steps)


def cpu(ask: Ask) -> float:
    """Return the seconds of CPU time that an answer takes."""
    gc.collect()
    gc.disable()
    start = process_time()
    ask()
    taken = process_time() - start
    gc.enable()
    return taken


class Row(NamedTuple):
    """One line of the table: microseconds for each instant, one number for each round."""

    measure: str
    question: Question
    zone: str
    taken: dict[str, list[float]]

    def median(self, name: str) -> float:
        return statistics.median(self.taken[name])

    def ratio(self) -> float:
        """How many times as long as Rota the fastest peer takes."""
        return min(self.median(name) for name in self.taken if name != "rota") / self.median("rota")


def rows(among: list[Library]) -> list[Row]:
    names = [library.name for library in among]
    return [
        Row(measure, question, zone, {name: [] for name in names})
        for measure in ("parse + next", "iterate")
        for question in QUESTIONS
        for zone in ZONES
    ]


def measure(among: list[Library], rounds: int, batch: int) -> list[Row]:
    """Ask every library every question in every round; the order of the libraries turns with the rounds."""
    table, numbers = rows(among), {question.name: count() for question in QUESTIONS}
    for number in range(-1, rounds):  # the first round warms up and does not count
        turned = among[number % len(among) :] + among[: number % len(among)]
        for row in table:
            asked = list(asked_once(row, numbers[row.question.name], batch))
            for library in turned:
                taken = cpu(question_of(library, row, asked))
                if number >= 0:
                    row.taken[library.name].append(taken / instants_of(row, batch) * 1e6)
    return table


def asked_once(row: Row, numbers: Iterator[int], batch: int) -> Iterator[tuple[str, datetime]]:
    """Yield expressions that nobody was asked before, each with another moment."""
    if row.measure == "parse + next":
        for _ in range(batch):
            number = next(numbers)
            yield row.question.different(number), (START + number * timedelta(hours=7)).astimezone(ZONES[row.zone])


def question_of(library: Library, row: Row, asked: list[tuple[str, datetime]]) -> Ask:
    zone = row.zone
    if row.measure == "parse + next":
        return lambda: [library.first(expr, zone, after) for expr, after in asked]
    return library.steps(row.question.usual, zone, START.astimezone(ZONES[zone]), row.question.instants)


def instants_of(row: Row, batch: int) -> int:
    return batch if row.measure == "parse + next" else row.question.instants


def disagreements(among: list[Library]) -> list[str]:
    """Say which libraries list other instants than Rota does: a wrong answer may be a fast one."""
    found = []
    for question in QUESTIONS:
        for zone, shown in ZONES.items():
            answers = [
                [
                    each.astimezone(UTC)
                    for each in library.steps(question.usual, zone, START.astimezone(shown), question.instants)()
                ]
                for library in among
            ]
            for library, answer in zip(among, answers, strict=True):
                unlike = len(set(answer) ^ set(answers[0]))
                if unlike:
                    found.append(f"{library.name}: {unlike} instants unlike Rota's, {question.usual!r}, {zone}")
    return found


def worst(repeats: int) -> list[dict[str, Any]]:
    """Return how long each nasty question takes when it is the first of all, the slowest first."""
    found = []
    for expr in NASTY:
        for zone in NASTY_ZONES:
            asks: dict[str, Callable[[rota.Cron], object]] = {
                "next from 1970": lambda rule: rule.next(FIRST),
                "next from 2096": lambda rule: rule.next(datetime(2096, 3, 1, tzinfo=UTC)),
                "previous from 2099": lambda rule: rule.previous(LAST),
                "count 1970 to 2099": lambda rule: rule.count(FIRST, LAST),
            }
            for name, ask in asks.items():
                taken = [
                    cold(lambda ask=ask, expr=expr, zone=zone: ask(rota.Cron(expr, tz=zone))) for _ in range(repeats)
                ]
                found.append({"expression": expr, "zone": zone, "question": name, "ms": statistics.median(taken) * 1e3})
    return sorted(found, key=lambda each: -each["ms"])


def cold(ask: Ask) -> float:
    """Ask in a process of its own: whatever is kept for the next question, nobody has asked one before."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, str(cpu(ask)).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with open(reading) as answer:  # noqa: PTH123 (a pipe has no path)
        taken = answer.read()
    os.waitpid(child, 0)
    return float(taken)


def show(table: list[Row], names: list[str]) -> None:
    """Print one table: the median and the range of the rounds, in microseconds for each instant."""
    print(f"{'µs CPU per instant':31}" + "".join(f"{name:>24}" for name in names) + f"{'best peer / rota':>20}")
    for row in table:
        cells = [f"{row.median(name):8.2f} ({min(taken):.2f}..{max(taken):.2f})" for name, taken in row.taken.items()]
        line = f"{row.measure:13}{row.question.name:9}{row.zone.rpartition('/')[2]:9}"
        print(line + "".join(f"{cell:>24}" for cell in cells) + f"{row.ratio():19.1f}×")


def show_worst(slowest: list[dict[str, Any]]) -> None:
    print(f"\nthe worst first answers of a process, of {len(slowest)} (limit {LIMIT:.0f} ms)")
    heads = {each["question"]: each for each in reversed(slowest)}
    for each in sorted(heads.values(), key=lambda each: -each["ms"]):
        print(f"{each['ms']:10.2f} ms  {each['question']:20}  {each['expression']}  {each['zone']}")


def report(
    table: list[Row], slowest: list[dict[str, Any]], unlike: list[str], among: list[Library], rounds: int
) -> dict[str, Any]:
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "versions": {library.name: version(library.package) for library in among if library.name != "rota"},
        "rota": rota.__version__,
        "rounds": rounds,
        "unit": "microseconds of CPU per instant",
        "results": [
            {
                "measure": row.measure,
                "question": row.question.name,
                "expression": row.question.usual,
                "zone": row.zone,
                "libraries": {
                    name: {"median": row.median(name), "min": min(taken), "max": max(taken)}
                    for name, taken in row.taken.items()
                },
                "best_peer_over_rota": row.ratio(),
            }
            for row in table
        ],
        "unlike_rota": unlike,
        "worst": slowest,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Rota's rules beside cronsim, croniter and APScheduler.")
    parser.add_argument("--quick", action="store_true", help="fewer rounds and smaller batches: to see that it runs")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers to this file as well")
    options = parser.parse_args()
    rounds, batch, repeats = (3, 20, 1) if options.quick else (9, 64, 3)
    among = libraries()
    slowest = worst(repeats)  # before anything is kept
    table = measure(among, rounds, batch)
    show(table, [library.name for library in among])
    unlike = disagreements(among)
    print("\n".join(["", *unlike]) if unlike else "\nall libraries list the same instants")
    show_worst(slowest)
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(report(table, slowest, unlike, among, rounds), indent=2) + "\n")
    if slowest[0]["ms"] >= LIMIT:
        sys.exit(f"bench/times.py: the worst answer takes {slowest[0]['ms']:.0f} ms, the limit is {LIMIT:.0f} ms")


if __name__ == "__main__":
    main()
