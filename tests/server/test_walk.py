"""Every route there is, with every role that does not reach: nobody gets further than the door."""

import re

import pytest
from tests.server.serving import client

import rota
from rota.server.web import web

OPEN = {"/healthz", "/readyz"}
ADMINS = ("/api/tokens",)


@pytest.fixture
def app() -> rota.Rota:
    return rota.Rota("sqlite://", name="shop")


async def described(app: rota.Rota) -> list[tuple[str, str]]:
    async with client(web(app, auth=lambda _: rota.Caller("ann", rota.Role.ADMIN))) as ann:
        paths = (await ann.get("/openapi.json")).json()["paths"]
    return [(method.upper(), path) for path, methods in paths.items() for method in methods]


def addresses(path: str) -> list[str]:
    filled = re.sub(r"\{[^}]*\}", "1", path)
    return [filled, f"{filled}/", f"/{filled}", filled.upper(), f"{filled}?x=1", f"{filled};x", f"/.{filled}"]


async def test_no_route_answers_a_stranger(app: rota.Rota) -> None:
    found = await described(app)
    assert len(found) > 4
    async with client(web(app), None) as stranger:
        for method, path in found:
            if path in OPEN:
                continue
            for address in addresses(path):
                for verb in {method, "HEAD", "OPTIONS", "GET", "POST"}:
                    answer = await stranger.request(verb, f"http://test{address}")
                    assert answer.status_code == 401, (verb, address)


@pytest.mark.parametrize(("role", "mayn_t"), [("read", "unsafe"), ("operate", "admin")])
async def test_no_role_reaches_beyond_itself(app: rota.Rota, role: str, mayn_t: str) -> None:
    """A POST that only answers a question changes nothing: it says so by its name."""
    asking = {"/api/preview"}
    async with client(web(app, auth=lambda _: rota.Caller("ann", rota.Role(role)))) as ann:
        for method, path in await described(app):
            admins = path.startswith(ADMINS)
            unsafe = method not in ("GET", "HEAD") and path not in asking
            if admins or (mayn_t == "unsafe" and unsafe):
                address = re.sub(r"\{[^}]*\}", "1", path)
                answer = await ann.request(method, f"http://test{address}", json={}, headers={"Authorization": "x"})
                assert answer.status_code == 403, (method, path, answer.text)
