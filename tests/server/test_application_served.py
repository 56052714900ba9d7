"""`rota serve` brings what is installed and built in: an application whole, over HTTP, on each store."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from tests.server.serving import Served
from tests.servers import ROOT
from tests.test_application import bring

TOKEN = "0123456789abcdef"  # noqa: S105 (it opens nothing)


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store of this test's own: applications make tables."""
    return f"sqlite:///{tmp_path}/own.db" if request.param == "sqlite" else request.getfixturevalue("postgres_database")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Where a package is installed that brings the shelf."""
    bring(tmp_path / "site", "shelf", "examples.shelf:application")
    return tmp_path / "site"


@pytest.fixture
def ann(url: str, site: Path, tmp_path: Path) -> Iterator[httpx2.Client]:
    """An admin, at a server beside which the shelf is installed."""
    path = os.pathsep.join([str(site), str(ROOT)])
    env = {"ROTA_TOKEN": TOKEN, "ROTA_STORE": url, "ROTA_ALLOW_COMMANDS": "echo", "PYTHONPATH": path}
    with Served(cwd=tmp_path, **env) as served:
        address = served.address()
        with httpx2.Client(base_url=address, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as asking:
            yield asking
        served.popen.terminate()
        assert served.ended()[0] == 0


def told(answer: httpx2.Response) -> Any:
    assert answer.is_success, answer.text
    return answer.json()


def ended(ann: httpx2.Client, run: int) -> dict[str, Any]:
    """Wait for the end of a run; the test's own time limit is the bound."""
    while True:
        found: dict[str, Any] = told(ann.get(f"/api/runs/{run}"))
        if found["state"] in ("succeeded", "failed", "cancelled"):
            return found
        time.sleep(0.02)


def test_an_application_is_served_whole(ann: httpx2.Client, url: str, site: Path, tmp_path: Path) -> None:
    reading = told(ann.post("/api/tokens", json={"name": "bob", "role": "read"}))["token"]
    bob = {"Authorization": f"Bearer {reading}"}
    # its table and its routes, with a floor of roles
    assert told(ann.post("/api/shelf", params={"title": "Emma"})) == {"book": 1}
    assert [each["title"] for each in told(ann.get("/api/shelf", headers=bob))] == ["Emma"]
    assert ann.post("/api/shelf", params={"title": "Persuasion"}, headers=bob).status_code == 403
    assert ann.get("/api/shelf", headers={"Authorization": "none"}).status_code == 401
    # its task, from its route, under its limit
    run = told(ann.post("/api/shelf/1/lend", params={"person": "Ann", "days": 0}))["run"]
    assert ended(ann, run)["result"] == "dear Ann, bring back Emma"
    assert [each["key"] for each in told(ann.get("/api/limits"))["items"]] == ["shelf"]
    # its schedule
    (schedule,) = told(ann.get("/api/schedules"))["items"]
    assert (schedule["key"], schedule["task"]) == ("shelf-survey", "shelf.survey")
    triggered = told(ann.post("/api/schedules/shelf-survey/trigger"))["run"]
    assert ended(ann, triggered)["result"] == 1
    # its metric, beside Rota's own
    shown = ann.get("/metrics", headers=bob).text
    assert 'shelf_books{state="lent"} 1.0' in shown
    assert "scheduled_jobs_total 1.0" in shown
    # its command, on the same store
    words = [sys.executable, "-m", "rota", "shelf", "list", "--store", url]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    assert subprocess.check_output(words, env=env, cwd=tmp_path, text=True) == "1  'Emma'  Ann\n"


def test_what_is_built_in_is_a_task_type_and_can_be_scheduled(ann: httpx2.Client) -> None:
    names = [each["name"] for each in told(ann.get("/api/task-types"))["items"]]
    assert names == ["rota.command", "rota.http", "shelf.remind", "shelf.survey"]
    arguments = {"program": "echo", "args": ["good morning"]}
    schedule = {"key": "greet", "task": "rota.command", "arguments": arguments, "rule": "@daily"}
    assert ann.post("/api/schedules", json=schedule).status_code == 201
    run = told(ann.post("/api/schedules/greet/trigger"))["run"]
    assert ended(ann, run)["result"]["output"] == "good morning\n"
    schedule = {"key": "call", "task": "rota.http", "arguments": {"url": "http://127.1/"}, "rule": "@daily"}
    refused = ann.post("/api/schedules", json=schedule)
    assert refused.status_code == 422
    assert "'127.1' is an address in disguise" in refused.json()["detail"]
    found = told(ann.get("/api/statistics", params={"window": "10m"}))
    assert (found["total_checks"], found["successful_checks"], found["failed_checks"]) == (1, 1, 0)


def test_an_installed_application_that_cannot_be_loaded_keeps_a_server_from_starting(
    url: str, site: Path, tmp_path: Path
) -> None:
    """Else its schedules would be retired, as gone from the code."""
    bring(site, "broken", "no.such.module:application")
    path = os.pathsep.join([str(site), str(ROOT)])
    with Served(cwd=tmp_path, ROTA_STORE=url, PYTHONPATH=path) as served:
        code, said = served.ended()
    assert code == 1
    assert "'broken' cannot be loaded; repair or uninstall it" in said
    assert "Traceback" not in said
