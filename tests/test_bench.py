"""The benchmark of the engine runs, and reads its own numbers right."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from bench.engine.plan import MEASURES, QUEUES, SCHEDULERS, TARGETS, Sizes
from bench.engine.process import ROOT
from bench.engine.results import Results

PEERS = sorted({each.name for several in (*QUEUES.values(), *SCHEDULERS.values()) for each in several} - {"rota"})


def verdict(results: Results, measure: str) -> list[bool]:
    row = next(each for each in results.rows() if each.measure == measure)
    return [held for _, held in results.verdicts(row)]


def test_a_tiny_run_prints_the_table_and_writes_the_numbers(tmp_path: Path) -> None:
    numbers = tmp_path / "numbers.json"
    words = [
        "--quick",
        "--alone",
        "--store",
        "sqlite",
        "--only",
        "enqueue in bulk,drain,latency,lock",
        "--scale",
        "0.02",
    ]
    done = subprocess.run(
        [sys.executable, "-m", "bench.engine", *words, "--rounds", "1", "--json", str(numbers)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    wanted = {"drain", "enqueue in bulk", "latency p50", "latency p99", "lock and release"}
    found = json.loads(numbers.read_text())
    assert {each["measure"] for each in found["results"]} == wanted
    for each in found["results"]:
        [taken] = each["contestants"]["rota"]["rounds"]
        assert taken > 0
        assert each["store"] == "sqlite"
    assert found["settings"] == {"sqlite synchronous": "normal"}
    assert all(any(line.startswith(name) for line in done.stdout.splitlines()) for name in wanted)


@pytest.mark.parametrize(
    ("measure", "rota", "peer", "better"),
    [("drain", 300.0, 100.0, 3.0), ("drain", 50.0, 100.0, 0.5), ("latency p50", 2.0, 8.0, 4.0)],
)
def test_above_one_rota_is_better_whatever_is_measured(measure: str, rota: float, peer: float, better: float) -> None:
    results = Results()
    for name, value in {"rota": rota, "pgqueuer": peer, "dbos": peer * (0.1 if measure == "drain" else 10)}.items():
        results.add(measure, "postgres", name, value)
    assert results.rows()[0].ratio() == better


@pytest.mark.parametrize(("rota", "met"), [([1.0, 200.0, 900.0], True), ([1.0, 199.0, 900.0], False)])
def test_a_target_holds_for_the_median_of_the_rounds(rota: list[float], met: bool) -> None:
    results = Results()
    for mine, theirs in zip(rota, [50.0, 100.0, 1000.0], strict=True):
        results.add("drain", "postgres", "rota", mine)
        results.add("drain", "postgres", "pgqueuer", theirs)
    assert verdict(results, "drain") == [met]


def test_a_named_peer_counts_though_another_is_better() -> None:
    results = Results()
    for name, value in {"rota": 20_000.0, "apscheduler": 1_000.0, "celery": 5_000.0}.items():
        results.add("firings, all due at once", "postgres", name, value)
    assert verdict(results, "firings, all due at once") == [True]
    assert results.rows()[0].ratio() == 4.0


@pytest.mark.parametrize(("many", "met"), [(1.5, True), (1.6, False)])
def test_growth_is_against_the_fewest_schedules(many: float, met: bool) -> None:
    results = Results()
    results.add("idle CPU", "sqlite", "rota", many, 1_000_000)
    results.add("idle CPU", "sqlite", "rota", 1.0, 1_000)
    few, most = results.rows()
    assert list(results.verdicts(few)) == []
    assert [held for _, held in results.verdicts(most)] == [met]


@pytest.mark.parametrize("name", PEERS)
def test_every_peer_has_pins_and_a_contestant_of_its_own(name: str) -> None:
    assert f"\n{name}==" in "\n" + (ROOT / "requirements" / f"peer-{name}.txt").read_text()
    assert (ROOT / "bench" / "engine" / "contestants" / f"{name}.py").is_file()


def test_every_target_is_of_something_measured() -> None:
    assert {measure for measure, _ in TARGETS} <= set(MEASURES)


def test_a_scaled_run_measures_at_least_something() -> None:
    tiny = Sizes().scaled(1e-9)
    assert min(tiny.sent, tiny.due_at_once, tiny.asked, tiny.ticks, *tiny.schedules) > 0
