"""What is deployed asks only for metrics that exist, by labels that they have."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from tests.habits.source import ROOT

from rota import metrics
from rota.app import Rota
from rota.store.runs import Claimed
from rota.store.schedule_rows import Fired

BOARD = ROOT / "deploy" / "grafana-dashboard.json"
RULES = ROOT / "deploy" / "prometheus-alerts.yml"
OURS = re.compile(r"\b((?:rota|scheduler|scheduled|process)_[a-z0-9_]+)\b(?:\{([^}]*)\})?")
GROUPED = re.compile(r"\b(?:by|on|unless on) \(([^)]*)\)")
OUTSIDE = {"job", "instance", "le"}
"""The labels that Prometheus itself gives, and that of buckets."""


def dashboard() -> Iterator[tuple[str, str]]:
    for panel in json.loads(BOARD.read_text())["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]


def rules() -> Iterator[tuple[str, str]]:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


EXPRESSIONS = [*dashboard(), *rules()]


@pytest.fixture
async def exposed(store: str) -> dict[str, set[str]]:
    """Every name of the real exposition, with its labels."""
    async with Rota(store) as app:

        @app.task(name="t")
        async def work() -> None: ...

        run = Claimed(1, "t", "{}", 1, 0, 0, 50, "default", 1, False, 0, None, None, "s")
        app.counts.ended(run, "failed", 1.0)
        app.counts.took_in(Fired(0, 0, 0, {}, reasons={"missed": 1}, lost_by={"s": 1}, decided={"s": {"task": "t"}}))  # type: ignore[dict-item]
        await app.enqueue(work.call())
        found: dict[str, set[str]] = {}
        async for family in metrics.families(app):
            for sample in family.samples:
                found.setdefault(sample.name, set()).update(sample.labels)
            declared: Any = getattr(family, "_labelnames", ())
            found.setdefault(family.name, set()).update(declared)
    return found


async def test_an_expression_names_only_what_is_there(exposed: dict[str, set[str]]) -> None:
    assert {name: wrong for name, expression in EXPRESSIONS if (wrong := wrong_in(expression, exposed))} == {}


def wrong_in(expression: str, exposed: dict[str, set[str]]) -> list[str]:
    """Return what an expression asks for that is not there."""
    used = OURS.findall(expression)
    wrong = [name for name, _ in used if name not in exposed]
    wrong += [] if used else ["no metric"]
    for name, matchers in used:
        asked = {each.split("=")[0].strip("~! ") for each in matchers.split(",") if each}
        wrong += sorted(asked - exposed.get(name, set()))
    labels = OUTSIDE.union(*(exposed.get(name, set()) for name, _ in used))
    for group in GROUPED.findall(expression):
        wrong += sorted({each.strip() for each in group.split(",")} - labels)
    return wrong if expression.count("(") == expression.count(")") else [*wrong, "brackets"]


@pytest.mark.parametrize(
    ("expression", "wrong"),
    [
        ("max(rota_workers_gone)", ["rota_workers_gone"]),
        ('max(rota_workers{status="alive"})', ["status"]),
        ("sum by (queue) (rota_workers)", ["queue"]),
        ("up == 0", ["no metric"]),
        ("max(rota_workers", ["brackets"]),
    ],
)
def test_what_is_wrong_is_seen(expression: str, wrong: list[str]) -> None:
    assert wrong_in(expression, {"rota_workers": {"state"}}) == wrong


def test_panels_do_not_lie_on_each_other() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in json.loads(BOARD.read_text())["panels"]:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells


def test_every_alert_says_what_is_wrong_and_how_bad_it_is() -> None:
    for group in yaml.safe_load(RULES.read_text())["groups"]:
        for rule in group["rules"]:
            assert {"summary", "description"} <= set(rule["annotations"]), rule["alert"]
            assert rule["labels"]["severity"] in ("warning", "critical")
