"""A key makes something once, whoever dies in between and however often it is asked for."""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from starlette.responses import Response
from tests.server.serving import client, served
from tests.stores import ask

import rota
from rota.app import Rota
from rota.model import Run
from rota.server.auth import Operator
from rota.server.idempotency import Once
from rota.tasks import Registry


class Made(BaseModel):
    id: int

    @classmethod
    def of(cls, run: Run[Any]) -> "Made":
        return cls(id=run.id)


class Wanted(BaseModel):
    item: str


@pytest.fixture
def mail(app: Rota) -> rota.Task[..., None]:
    @app.task(name="mail")
    async def mail(item: str) -> None: ...

    return mail


async def make(wanted: Wanted, _: Operator, once: Once) -> Response:
    return await once(
        lambda here: here.enqueue(here.tasks.get("mail").call(wanted.item)),
        Made.of,
        headers=lambda run: {"Location": f"/api/runs/{run.id}"},
    )


async def number(app: Rota) -> int:
    return len(await app.runs.list())


async def test_a_path_may_name_a_key_of_its_own(app: Rota, mail: object) -> None:
    async def make_there(key: str, _: Operator, once: Once) -> Response:
        return await once(lambda here: here.enqueue(here.tasks.get("mail").call(key)), Made.of)

    async with client(served(app, ("POST", "/make/{key}", make_there))) as ann:
        made = [await ann.post(f"/api/make/{each}", headers={"Idempotency-Key": each}) for each in "aab"]
    assert [each.status_code for each in made] == [201] * 3
    assert await number(app) == 2


async def test_the_same_request_with_the_same_key_is_done_once(app: Rota, mail: object) -> None:
    async with client(served(app, ("POST", "/make", make))) as ann:
        first, second = [
            await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"}) for _ in range(2)
        ]
    assert (first.status_code, second.status_code, first.text) == (201, 201, second.text)
    assert first.headers["location"] == second.headers["location"]
    assert ("idempotent-replayed" in first.headers, "idempotent-replayed" in second.headers) == (False, True)
    assert await number(app) == 1


async def test_many_at_once_with_one_key_are_one(app: Rota, mail: object) -> None:
    async with client(served(app, ("POST", "/make", make))) as ann:
        asked = [ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"}) for _ in range(20)]
        found = await asyncio.gather(*asked)
    assert {each.status_code for each in found} == {201}
    assert len({each.text for each in found}) == 1
    assert await number(app) == 1


async def test_another_request_with_the_same_key_is_refused(app: Rota, mail: object) -> None:
    async with client(served(app, ("POST", "/make", make))) as ann:
        await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"})
        other = await ann.post("/api/make", json={"item": "y"}, headers={"Idempotency-Key": "k"})
    assert other.status_code == 422
    assert other.json()["errors"][0]["field"] == "Idempotency-Key"
    assert await number(app) == 1


async def test_keys_are_each_callers_own_and_no_key_is_none(app: Rota, mail: object) -> None:
    api = served(app, ("POST", "/make", make))
    for caller in ("ann:admin", "bob:operate"):
        async with client(api, caller) as somebody:
            assert (
                await somebody.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"})
            ).status_code == 201
            assert (await somebody.post("/api/make", json={"item": "x"})).status_code == 201
    assert await number(app) == 4


@pytest.mark.parametrize("key", ["", "a b", "x" * 201])
async def test_a_key_that_is_none_is_refused(app: Rota, mail: object, key: str) -> None:
    async with client(served(app, ("POST", "/make", make))) as ann:
        answer = await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": key})
    assert answer.status_code == 422
    assert await number(app) == 0


async def test_what_failed_is_not_kept_and_may_be_asked_again(app: Rota) -> None:
    async with client(served(app, ("POST", "/make", make))) as ann:
        assert (
            await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"})
        ).status_code == 404  # no such task

        @app.task(name="mail")
        async def mail(item: str) -> None: ...

        assert (await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"})).status_code == 201


async def test_an_answer_that_cannot_be_made_undoes_the_effect(app: Rota, mail: object) -> None:
    def broken(_: Run[Any]) -> Made:
        raise RuntimeError

    async def half(_: Operator, once: Once) -> Response:
        return await once(lambda here: here.enqueue(here.tasks.get("mail").call("x")), broken)

    async with client(served(app, ("POST", "/make", half))) as ann:
        assert (await ann.post("/api/make", headers={"Idempotency-Key": "k"})).status_code == 500
    assert await number(app) == 0
    assert await ask(app.database, "SELECT key FROM rota_idempotency") == []


async def test_an_effect_beside_the_key_is_a_failure_and_not_a_silent_double(app: Rota, mail: object) -> None:
    async def beside(_: Operator, once: Once) -> Response:
        return await once(lambda _: app.enqueue(app.tasks.get("mail").call("x")), Made.of)

    async with client(served(app, ("POST", "/make", beside))) as ann:
        assert (await ann.post("/api/make", headers={"Idempotency-Key": "k"})).status_code == 500


async def test_a_schedule_is_made_once(app: Rota, mail: object) -> None:
    class Key(BaseModel):
        key: str

    async def put(_: Operator, once: Once) -> Response:
        return await once(
            lambda here: here.schedules.put(
                rota.Schedule("s", here.tasks.get("mail").call("x"), rota.Every("1h")), create=True
            ),
            lambda state: Key(key=state.key),
        )

    async with client(served(app, ("POST", "/make", put))) as ann:
        found = [(await ann.post("/api/make", headers={"Idempotency-Key": key})).status_code for key in ("k", "k", "l")]
    assert found == [201, 201, 409]


async def test_after_a_day_a_key_is_free_and_is_swept(app: Rota, mail: object) -> None:
    async with client(served(app, ("POST", "/make", make))) as ann:
        for key in ("k", "l"):
            await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": key})
        await ask(app.database, "UPDATE rota_idempotency SET at = at - 86400000001 RETURNING key")
        again = await ann.post("/api/make", json={"item": "y"}, headers={"Idempotency-Key": "k"})
    assert again.status_code == 201
    assert await number(app) == 3
    await app.worker().sweeper.history_once()
    assert len(await ask(app.database, "SELECT key FROM rota_idempotency")) == 1


async def test_who_asks_again_is_answered_whatever_has_changed_since(app: Rota, mail: object) -> None:
    async with client(served(app, ("POST", "/make", make))) as ann:
        first = await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"})
        app.tasks = Registry(app)
        again = await ann.post("/api/make", json={"item": "x"}, headers={"Idempotency-Key": "k"})
        assert (await ann.post("/api/make", json={"item": "x"})).status_code == 404
    assert (again.status_code, again.text) == (201, first.text)
