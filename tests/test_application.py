"""An application: what it brings is there once it is included, on either store, in the same transactions."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import FrozenInstanceError, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from examples.shelf import application, lending
from fastapi import FastAPI
from fastapi.testclient import TestClient
from prometheus_client.metrics_core import Metric
from tests.engine import isolated_tasks
from tests.servers import ROOT
from tests.stores import ask

import rota
from rota.application import installed
from rota.doctor import examine


@pytest.fixture
def url(tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """The address of a store of this test's own: applications make tables."""
    return f"sqlite:///{tmp_path}/own.db" if request.param == "sqlite" else request.getfixturevalue("postgres_database")


@pytest.fixture
def app(url: str) -> rota.Rota:
    app = rota.Rota(url, name="library")
    app.include(application)
    return app


@pytest.fixture
async def shelf(app: rota.Rota) -> AsyncIterator[rota.Rota]:
    async with app:
        yield app


both = pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)


async def book(shelf: rota.Rota, title: str = "Emma") -> int:
    (row,) = await shelf.database.execute("shelf.add", title=title)
    return int(row["id"])


# What it brings


@both
async def test_its_tables_are_made_beside_rotas_and_kept_up_to_date(app: rota.Rota) -> None:
    await app.connect()
    assert (await app.migrate())[-1] == "0001_books"
    assert await app.migrate() == []
    rows = await ask(app.database, "SELECT owner, number FROM rota_migrations WHERE owner = 'shelf'")
    assert [tuple(row) for row in rows] == [("shelf", 1)]
    await app.close()


@both
async def test_a_newer_application_than_this_one_is_refused(app: rota.Rota) -> None:
    async with app:
        await ask(app.database, "INSERT INTO rota_migrations VALUES ('shelf', 2, '0002_more', 0)")
    with pytest.raises(rota.SchemaTooNew, match="the store's tables of shelf are at version 2, this code knows 1"):
        await app.open()


@both
async def test_its_tasks_run_on_the_app_that_includes_it(shelf: rota.Rota) -> None:
    emma = await book(shelf)
    run = await lending.lend(shelf, emma, "Ann", timedelta(0))
    assert run is not None
    assert (await shelf.tick()).outcomes == {"succeeded": 1}
    assert await shelf.runs.result(run.id) == "dear Ann, bring back Emma"
    assert (await shelf.database.fetch("shelf.list"))[0]["reminded"] == 1


async def test_a_task_in_a_process_of_its_own_has_no_app_there() -> None:
    app = rota.Rota("sqlite://")
    app.include(rota.Application("lonely", tasks=[isolated_tasks.alone]))
    async with app:
        run = await app.enqueue(isolated_tasks.alone.call())
        await app.tick()
        said = await app.runs.result(run.id)
    assert said.startswith("task: 'alone' has no app in its process; make a rota.Rota(…) there")


@both
async def test_what_it_declares_is_put_by_a_scheduler(shelf: rota.Rota) -> None:
    await shelf.put_declared()
    assert [(each.key, each.declared) for each in await shelf.schedules.list()] == [("shelf-survey", True)]
    assert [(each.key, each.limit) for each in await shelf.limits.list()] == [("shelf", rota.Limit(at_once=1))]


@both
async def test_a_limit_that_somebody_has_put_stays(shelf: rota.Rota) -> None:
    await shelf.limits.put("shelf", rota.Limit(at_once=7))
    await shelf.put_declared()
    assert [each.limit.at_once for each in await shelf.limits.list()] == [7]


@both
async def test_its_schedule_runs_by_virtual_time_on_a_store_of_its_own(app: rota.Rota) -> None:
    async with rota.testing.travel(app, start="2027-01-01T00:00Z") as time:
        assert (await time.advance("2d")).succeeded == 2
        assert [each.result for each in await app.runs.list()] == ["0", "0"]


@both
def test_its_routes_are_under_api_of_a_server(app: rota.Rota) -> None:
    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncIterator[None]:
        async with app:
            yield

    api = FastAPI(lifespan=opened)
    api.state.rota = app
    for each in app.applications:
        api.include_router(each.routes, prefix="/api")
    with TestClient(api) as web:
        made = web.post("/api/shelf", params={"title": "Emma"})
        assert (made.status_code, made.json()) == (201, {"book": 1})
        assert web.post("/api/shelf/1/lend", params={"person": "Ann"}).json()["run"] > 0
        assert web.post("/api/shelf/1/lend", params={"person": "Bob"}).status_code == 409
        assert web.get("/api/shelf").json() == [{"id": 1, "title": "Emma", "lent_to": "Ann", "reminded": 0}]
        assert web.portal is not None
        assert [each.state for each in web.portal.call(app.runs.list)] == ["waiting"]


@both
async def test_its_metrics_come_from_the_store(shelf: rota.Rota) -> None:
    await lending.lend(shelf, await book(shelf), "Ann", timedelta(days=1))
    await book(shelf)
    (each,) = shelf.applications
    assert each.metrics is not None
    found: list[Metric] = list(await each.metrics(shelf))
    assert {sample.labels["state"]: sample.value for family in found for sample in family.samples} == {
        "lent": 1,
        "here": 1,
    }


@both
async def test_the_doctor_hears_what_it_has_to_say(shelf: rota.Rota) -> None:
    assert all(each.ok for each in await examine(shelf))
    await ask(shelf.database, "INSERT INTO shelf_books (title, lent_to, back_by) VALUES ('Emma', 'Ann', 0)")
    assert [each.what for each in await examine(shelf) if not each.ok] == ["books kept too long: 1"]


async def test_an_application_whose_doctor_fails_keeps_nobody_from_speaking() -> None:
    async def doctor(_: rota.Rota) -> list[rota.Finding]:
        raise ZeroDivisionError("two\nlines")

    app = rota.Rota("sqlite://")
    app.include(rota.Application("broken", doctor=doctor), application)
    async with app:
        await ask(app.database, "INSERT INTO shelf_books (title, lent_to, back_by) VALUES ('Emma', 'Ann', 0)")
        assert [each.what for each in await examine(app) if not each.ok] == [
            "application broken cannot be examined: ZeroDivisionError: two",
            "books kept too long: 1",
        ]


# The same transactions


@both
async def test_a_row_and_a_run_are_stored_together_or_not_at_all(shelf: rota.Rota) -> None:
    emma = await book(shelf)
    with pytest.raises(ZeroDivisionError):
        await lend_and_fail(shelf, emma)
    assert (await shelf.database.fetch("shelf.list"))[0]["lent_to"] is None
    assert await shelf.runs.list() == []
    assert await lending.lend(shelf, emma, "Ann", timedelta(days=1)) is not None
    assert await lending.lend(shelf, emma, "Bob", timedelta(days=1)) is None
    assert len(await shelf.runs.list()) == 1


async def lend_and_fail(shelf: rota.Rota, emma: int) -> None:
    async with shelf.database.transaction() as transaction:
        assert await transaction.execute("shelf.lend", id=emma, person="Ann", micros=1)
        await shelf.enqueue(lending.remind.call(emma), connection=transaction)
        await shelf.schedules.put(rota.Schedule("s", lending.survey.call(), rota.Every("1h")), connection=transaction)
        assert await shelf.runs.list() == []  # nobody else sees it
        raise ZeroDivisionError


@both
async def test_a_worker_begins_when_the_transaction_has_committed(shelf: rota.Rota) -> None:
    emma = await book(shelf)
    async with shelf.running(scheduler=False):
        run = await lending.lend(shelf, emma, "Ann", timedelta(0))
        assert run is not None
        assert (await shelf.runs.wait(run.id, timeout="1m")).state == "succeeded"


@both
async def test_a_run_that_its_task_completes_is_said_and_measured_as_the_success_that_it_is(
    shelf: rota.Rota, caplog: pytest.LogCaptureFixture
) -> None:
    emma = await book(shelf)
    with caplog.at_level("INFO", logger="rota.worker"):
        async with shelf.running(scheduler=False):
            run = await lending.lend(shelf, emma, "Ann", timedelta(0))
            assert run is not None
            await shelf.runs.wait(run.id, timeout="1m")
    (said,) = [each for each in caplog.records if vars(each).get("verb") == "ended"]
    assert (vars(said)["outcome"], vars(said).get("error")) == ("succeeded", None)
    assert list(shelf.counts.attempts) == [("shelf.remind", "default", "succeeded")]


@both
async def test_many_rows_are_written_at_once(shelf: rota.Rota, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "bulk_sql"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "bulk.sql").write_text(
        "-- name: bulk.add @sqlite\nINSERT INTO shelf_books (title) VALUES (:title)\n"
        "-- name: bulk.add @postgres\nINSERT INTO shelf_books (title) SELECT unnest(:title::text[])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    shelf.database.statements.include(["bulk_sql"])
    async with shelf.database.transaction() as transaction:
        await transaction.execute_many("bulk.add", ("title",), [("Emma",), ("Persuasion",)])
    assert [row["title"] for row in await shelf.database.fetch("shelf.list")] == ["Emma", "Persuasion"]


@both
async def test_a_transaction_that_has_ended_takes_nothing_more(shelf: rota.Rota) -> None:
    async with shelf.database.transaction() as transaction:
        pass
    with pytest.raises(rota.Invalid, match="has ended; begin another"):
        await transaction.execute("shelf.list")
    with pytest.raises(rota.Invalid, match="has ended; begin another"):
        await shelf.enqueue(lending.survey.call(), connection=transaction)


@both
async def test_what_the_caller_raises_in_a_transaction_stays_what_it_is(shelf: rota.Rota) -> None:
    for error in (TimeoutError("mine"), OSError("mine")):
        with pytest.raises(type(error), match="mine"):
            async with shelf.database.transaction():
                raise error
    assert await book(shelf)  # and nobody is in the way


@both
async def test_who_is_cancelled_in_a_transaction_leaves_nothing_behind(shelf: rota.Rota) -> None:
    begun, never = asyncio.Event(), asyncio.Event()

    async def add_and_wait() -> None:
        async with shelf.database.transaction() as transaction:
            await transaction.execute("shelf.add", title="Emma")
            begun.set()
            await never.wait()

    adding = asyncio.create_task(add_and_wait())
    await begun.wait()
    adding.cancel()
    await asyncio.wait([adding])
    await book(shelf, "Persuasion")
    assert [row["title"] for row in await shelf.database.fetch("shelf.list")] == ["Persuasion"]


@both
async def test_a_closed_store_has_no_transactions(app: rota.Rota) -> None:
    with pytest.raises(rota.StoreUnavailable, match="the store is not open"):
        async with app.database.transaction():
            raise AssertionError


# Including

OWN = ["rota.command", "rota.http"]
"""The tasks that every app has."""


def test_several_apps_may_include_one_application() -> None:
    for _ in range(2):
        app = rota.Rota("sqlite://")
        app.include(application)
        assert app.tasks.names == [*OWN, "shelf.remind", "shelf.survey"]
        assert [each.key for each in app.declared] == ["shelf-survey"]
        assert app.applications == (application,)


async def test_a_task_of_an_application_is_enqueued_by_an_app() -> None:
    with pytest.raises(rota.Invalid, match=r"belongs to no app; .* use app.enqueue\(task.call\(…\)\)"):
        await lending.survey.enqueue()


def test_outside_a_run_there_is_no_current_app() -> None:
    with pytest.raises(rota.NoCurrentRun):
        rota.current_app()


def test_an_application_is_a_value() -> None:
    with pytest.raises(FrozenInstanceError):
        application.name = "other"  # type: ignore[misc]
    assert replace(application, name="other").tasks == application.tasks


async def test_it_is_included_once_and_before_the_app_is_opened() -> None:
    app = rota.Rota("sqlite://")
    app.include(application)
    with pytest.raises(rota.Invalid, match="'shelf' is included already; include each once"):
        app.include(application)
    async with app:
        with pytest.raises(rota.Invalid, match="'late' comes too late; include it before the app is opened"):
            app.include(rota.Application("late"))
    with pytest.raises(rota.Invalid, match=r"is no application; use a rota\.Application"):
        app.include("shelf")  # type: ignore[arg-type]


def test_what_cannot_be_included_changes_nothing() -> None:
    app = rota.Rota("sqlite://")
    app.task(name="shelf.survey")(lambda: None)
    with pytest.raises(rota.InvalidTask, match=r"'shelf\.survey' is already the task"):
        app.include(application)
    assert (app.applications, app.tasks.names, app.declared) == ((), [*OWN, "shelf.survey"], [])
    with pytest.raises(rota.Invalid, match="'shelf_books' is not named for other; name it other, or other_…"):
        app.include(rota.Application("other", migrations="examples.shelf.migrations"))


def test_a_schedule_that_is_declared_already_is_refused() -> None:
    app = rota.Rota("sqlite://")
    app.declare(application.schedules[0])
    with pytest.raises(rota.InvalidSchedule, match="'shelf-survey' is declared twice"):
        app.include(application)
    assert (app.applications, app.tasks.names) == ((), OWN)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"name": "Shelf"}, "name: 'Shelf' is not allowed; use up to 40 lower-case letters"),
        ({"name": "rota"}, "name: 'rota' is not allowed"),
        ({"tasks": [print]}, "tasks: .* does not belong there; use a list of Task"),
        ({"statements": "shelf.sql"}, "statements: 'shelf.sql' does not belong there"),
        ({"schedules": application.schedules * 2}, "schedules: .* has a key twice"),
        ({"limits": {"a b": rota.Limit(at_once=1)}}, "limit key: 'a b' is not allowed"),
    ],
)
def test_what_is_wrong_is_refused_when_it_is_named(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(rota.Invalid, match=said):
        rota.Application(**{"name": "shelf", **wrong})


@pytest.mark.parametrize(("title", "path"), [("", "/shelf"), ("Shelf", "shelf"), ("Shelf", "/Sh elf")])
def test_a_page_has_a_title_and_a_path(title: str, path: str) -> None:
    with pytest.raises(rota.Invalid):
        rota.Page(title, path)


# Installed


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A directory in which a package is installed that brings the shelf."""
    site = tmp_path / "site"
    bring(site, "shelf", "examples.shelf:application")
    return site


def bring(site: Path, name: str, value: str) -> None:
    info = site / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[rota.applications]\n{name} = {value}\n")


def command(site: Path, *words: str, code: int = 0) -> str:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])}
    done = subprocess.run(
        [sys.executable, "-m", "rota", *words], env=environment, cwd=site, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def test_what_is_installed_is_found_by_its_entry_point(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installed() == ()
    monkeypatch.syspath_prepend(site)
    assert installed() == (application,)


@both
def test_the_command_line_has_its_commands_and_makes_its_tables(site: Path, url: str) -> None:
    assert "applied 0001_books" in command(site, "migrate", "--store", url)
    command(site, "shelf", "add", "Emma", "--store", url)
    assert command(site, "shelf", "list", "--store", url) == "1  'Emma'\n"
    assert "no queue is behind" in command(site, "doctor", "--store", url)
    asyncio.run(lend_late(url))
    assert "BAD books kept too long: 1: ask" in command(site, "doctor", "--store", url, code=1)


async def lend_late(url: str) -> None:
    async with rota.Rota(url) as app:
        await ask(app.database, "UPDATE shelf_books SET lent_to = 'Ann', back_by = 0")


def test_a_command_that_fires_or_works_includes_it(site: Path) -> None:
    command(site, "tick")
    (schedule,) = json.loads(command(site, "schedules", "list", "--json"))
    assert (schedule["key"], schedule["state"]) == ("shelf-survey", "active")


@both
def test_a_copy_takes_its_tables_along(site: Path, url: str, tmp_path: Path) -> None:
    command(site, "shelf", "add", "Emma", "--store", url)
    target = f"sqlite:///{tmp_path}/copy.db"
    assert "shelf_books" in command(site, "copy", url, target)
    assert command(site, "shelf", "list", "--store", target) == "1  'Emma'\n"
    refused = command(tmp_path, "copy", url, f"sqlite:///{tmp_path}/third.db", code=1)
    assert "FROM also has what shelf keeps, which is not installed here" in refused


def test_a_copy_of_a_store_that_never_had_it_goes_without(site: Path, tmp_path: Path) -> None:
    source, target = f"sqlite:///{tmp_path}/plain.db", f"sqlite:///{tmp_path}/copy.db"
    command(tmp_path, "migrate", "--store", source)
    assert "shelf_books" not in command(site, "copy", source, target)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("broken", "no.such.module:application", "'broken' cannot be loaded; repair or uninstall it: ModuleNotFound"),
        ("other", "examples.shelf:application", "'other' names no application; let examples.shelf:application be a"),
        ("runs", "runs_application:application", "'runs' is a command of Rota's own; let it have another name"),
    ],
)
def test_an_application_that_cannot_be_loaded_is_in_nobodys_way(site: Path, name: str, value: str, said: str) -> None:
    bring(site, name, value)
    lines = "import rota, typer\napplication = rota.Application('runs', commands=typer.Typer())\n"
    (site / "runs_application.py").write_text(lines)
    shown = command(site, "next", "@daily", "--count", "1")
    assert said in shown
    assert "At 00:00" in shown
