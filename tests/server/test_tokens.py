"""Tokens: shown once, kept as a hash, valid until revoked or expired; each with a role."""

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.server.serving import client, served
from tests.stores import ask
from typer.testing import CliRunner

import rota
from rota.app import Rota
from rota.cli import app as commands
from rota.server.auth import Known


async def who(caller: Known) -> str:
    return f"{caller.name} {caller.role}"


def bearer(token: str) -> dict[str, bytes]:
    return {"Authorization": f"Bearer {token}".encode("latin-1")}


def contents(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def asked(app: Rota, token: str) -> tuple[int, str]:
    async with client(served(app, ("GET", "/who", who), auth=None), None) as somebody:
        answer = await somebody.get("/api/who", headers=bearer(token))
    return answer.status_code, answer.json() if answer.status_code == 200 else ""


async def test_a_token_lets_its_bearer_in_under_its_name_and_role(app: Rota) -> None:
    made = await app.tokens.create("ann", "operate")
    assert await asked(app, made.token) == (200, "ann operate")
    for other in (made.token[:-1], made.token.upper(), f"{made.token} x", "rota_", "\xe9", "x" * 10_000):
        assert (await asked(app, other))[0] == 401, other


async def test_a_revoked_token_is_refused_at_once_and_its_name_is_free(app: Rota) -> None:
    made = await app.tokens.create("ann")
    api = served(app, ("GET", "/who", who), auth=None)
    async with client(api, None) as somebody:
        assert (await somebody.get("/api/who", headers=bearer(made.token))).status_code == 200
        await app.tokens.revoke("ann")
        assert (await somebody.get("/api/who", headers=bearer(made.token))).status_code == 401
    again = await app.tokens.create("ann", rota.Role.ADMIN)
    assert (await asked(app, again.token), await asked(app, made.token)) == ((200, "ann admin"), (401, ""))
    assert [(each.name, each.revoked_at is None) for each in await app.tokens.list()] == [("ann", False), ("ann", True)]


async def test_a_token_is_valid_until_it_expires(app: Rota) -> None:
    made = await app.tokens.create("ann", expires="1h")
    assert (await asked(app, made.token))[0] == 200
    await ask(app.database, "UPDATE rota_tokens SET expires_at = expires_at - 3600000001")
    assert (await asked(app, made.token))[0] == 401


async def test_the_use_of_a_token_is_noted_to_the_hour(app: Rota) -> None:
    made = await app.tokens.create("ann")
    assert (await app.tokens.list())[0].used_at is None
    await asked(app, made.token)
    first = (await app.tokens.list())[0].used_at
    await asked(app, made.token)
    assert first is not None
    assert (await app.tokens.list())[0].used_at == first
    await ask(app.database, "UPDATE rota_tokens SET used_at = used_at - 3600000001")
    await asked(app, made.token)
    noted = (await app.tokens.list())[0].used_at
    assert noted is not None
    assert noted >= first


async def test_the_store_does_not_have_the_token(tmp_path: Path) -> None:
    async with Rota(f"sqlite:///{tmp_path}/rota.db") as app:
        made = await app.tokens.create("ann")
        assert repr(made).count(made.token) == 0
        await asked(app, made.token)
    whole = contents(tmp_path)
    assert b"ann" in whole
    assert made.token.encode() not in whole
    assert made.token.removeprefix("rota_").encode() not in whole


@pytest.mark.parametrize(
    ("act", "field"),
    [
        (lambda app: app.tokens.create(""), "name"),
        (lambda app: app.tokens.create("a\nb"), "name"),
        (lambda app: app.tokens.create("ROTA_TOKEN"), "name"),
        (lambda app: app.tokens.create("ann", "root"), "role"),
        (lambda app: app.tokens.create("ann", expires="0s"), "expires"),
        (lambda app: app.tokens.create("bob"), "name"),
    ],
)
async def test_what_a_token_cannot_have_is_refused(app: Rota, act: Callable[[Rota], object], field: str) -> None:
    await app.tokens.create("bob")
    with pytest.raises(rota.Invalid) as caught:
        await act(app)  # type: ignore[misc]
    assert caught.value.field == field
    assert len(await app.tokens.list()) == 1


async def test_only_a_token_that_is_there_is_revoked(app: Rota) -> None:
    for name in ("ann", "a\0b", "\ud800"):
        with pytest.raises(rota.UnknownToken):
            await app.tokens.revoke(name)


async def test_the_first_token_is_made_where_there_never_was_one(app: Rota) -> None:
    first = await app.tokens.create_first()
    assert first is not None
    assert await asked(app, first) == (200, "admin admin")
    await app.tokens.revoke("admin")
    assert await app.tokens.create_first() is None


async def test_the_operators_token_is_an_admins(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_TOKEN", "0123456789abcdef")
    assert await asked(app, "0123456789abcdef") == (200, "ROTA_TOKEN admin")
    assert (await asked(app, "0123456789abcdeF"))[0] == 401
    monkeypatch.delenv("ROTA_TOKEN")
    assert (await asked(app, "0123456789abcdef"))[0] == 401


@pytest.mark.parametrize("given", ["canary", "canary " * 9, "canaré" * 9])
def test_an_operators_token_that_is_none_is_refused_without_showing_it(
    given: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTA_TOKEN", given)
    with pytest.raises(rota.Invalid, match="at least 16") as caught:
        rota.Rota("sqlite://").web()
    assert "canar" not in str(caught.value)


async def test_admins_make_and_revoke_tokens_over_http_and_nobody_else_does(app: Rota) -> None:
    api = served(app)
    for role in ("read", "operate"):
        async with client(api, f"bob:{role}") as bob:
            assert (await bob.get("/api/tokens")).status_code == 403
            assert (await bob.post("/api/tokens", json={"name": "x"})).status_code == 403
            assert (await bob.delete("/api/tokens/x")).status_code == 403
    async with client(api) as ann:
        made = await ann.post("/api/tokens", json={"name": "deploy", "role": "operate", "expires": "90d"})
        assert made.status_code == 201
        assert await asked(app, made.json()["token"]) == (200, "deploy operate")
        listed = (await ann.get("/api/tokens")).json()
        assert [each["name"] for each in listed] == ["deploy"]
        assert "token" not in listed[0]
        assert (await ann.post("/api/tokens", json={"name": "deploy"})).status_code == 422
        assert (await ann.delete("/api/tokens/deploy")).status_code == 204
        assert (await ann.delete("/api/tokens/deploy")).status_code == 404
        assert (await ann.delete(f"/api/tokens/{'x' * 101}")).status_code == 422
    assert (await asked(app, made.json()["token"]))[0] == 401


def test_tokens_on_the_command_line(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/rota.db"
    run = CliRunner().invoke
    assert run(commands, ["migrate", "--store", store]).exit_code == 0
    made = run(commands, ["tokens", "create", "ann", "--role", "operate", "--expires", "90d", "--store", store])
    token = made.output.strip()
    assert token.startswith("rota_")
    (listed,) = json.loads(run(commands, ["tokens", "list", "--json", "--store", store]).output)
    assert (listed["name"], listed["role"], listed["revoked_at"]) == ("ann", "operate", None)
    shown = run(commands, ["tokens", "list", "--store", store]).output
    assert "ann" in shown
    assert token not in shown
    assert run(commands, ["tokens", "revoke", "ann", "--yes", "--store", store]).output == "ann is revoked\n"
    with sqlite3.connect(f"{tmp_path}/rota.db") as connection:
        assert connection.execute("SELECT revoked_at IS NULL FROM rota_tokens").fetchall() == [(0,)]
    also = json.loads(run(commands, ["tokens", "create", "ann", "--json", "--store", store]).output)
    assert (also["name"], also["role"]) == ("ann", "read")
