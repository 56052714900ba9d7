"""Health: alive is one thing, ready another."""

import asyncio

import pytest
from tests.server.serving import client
from tests.stores import ask

from rota.app import Rota
from rota.server import health
from rota.server.web import web


@pytest.fixture
def always_fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_FRESH_SECONDS", -1.0)


@pytest.mark.usefixtures("always_fresh")
async def test_a_server_is_ready_while_its_store_answers_with_its_tables(app: Rota) -> None:
    async with client(web(app), None) as anybody:
        assert (await anybody.get("/readyz")).json() == {"status": "ok"}
        await ask(app.database, "UPDATE rota_migrations SET owner = 'x' WHERE number = 8 AND owner = 'rota'")
        behind = await anybody.get("/readyz")
        await ask(app.database, "UPDATE rota_migrations SET owner = 'rota' WHERE owner = 'x'")
        assert (await anybody.get("/readyz")).status_code == 200
        await app.close()
        away, alive = await anybody.get("/readyz"), await anybody.get("/healthz")
        await app.open()
        assert (await anybody.get("/readyz")).status_code == 200
    assert (behind.status_code, away.status_code, alive.status_code) == (503, 503, 200)
    assert behind.json()["detail"] == "the store's tables are not up to date: 1 missing; run rota migrate"
    assert away.headers["retry-after"] == "2"


@pytest.mark.usefixtures("always_fresh")
async def test_a_store_that_hangs_is_not_ready_and_nobody_waits_long(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: object) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(health, "_SECONDS", 0.01)
    monkeypatch.setattr(app.database, "read", hang)
    async with client(web(app), None) as anybody:
        assert (await anybody.get("/readyz")).status_code == 503


async def test_strangers_cannot_work_the_store_by_asking_for_its_health(
    app: Rota, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = 0
    real = app.database.read

    async def counting(work: object) -> object:
        nonlocal looked
        looked += 1
        return await real(work)  # type: ignore[arg-type]

    monkeypatch.setattr(health, "_FRESH_SECONDS", 3_600.0)
    monkeypatch.setattr(app.database, "read", counting)
    async with client(web(app), None) as anybody:
        answers = await asyncio.gather(*(anybody.get("/readyz") for _ in range(20)))
    assert {each.status_code for each in answers} == {200}
    assert looked == 1
