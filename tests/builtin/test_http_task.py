"""The task `rota.http`: a URL on a schedule, without code."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.http.servers import reply, serving

import rota
from rota.app import Rota
from rota.model import Run
from rota.tasks import Task, named_call

SECRET = rota.notify.new_secret()


@pytest.fixture(autouse=True)
def near(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_ALLOW_NETWORKS", "127.0.0.0/8")


async def ended(app: Rota, **args: Any) -> Run[Any]:
    """Run the task with these arguments, as whoever knows only its name would."""
    async with app.running(scheduler=False):
        run = await app.enqueue(named_call("rota.http", json.dumps(args)))
        return await app.runs.wait(run.id, timeout="1m")


async def test_every_app_has_it(app: Rota) -> None:
    assert app.tasks.names == ["rota.command", "rota.http"]
    assert "rota.http" in Rota("sqlite:///:memory:").tasks
    run = await app.tasks.get("rota.http").enqueue(url="http://example.org/")
    assert (run.task, run.queue) == ("rota.http", "default")


async def test_its_names_are_not_for_others(app: Rota) -> None:
    def mine() -> None: ...

    with pytest.raises(rota.InvalidTask, match=r"is one of Rota's own; names that begin with rota\."):
        app.task(name="rota.mine")(mine)
    with pytest.raises(rota.InvalidTask, match=r"is one of Rota's own"):
        app.task(name="rota.http")(mine)


async def test_all_tasks_of_an_app_can_be_given_to_another(app: Rota) -> None:
    for task in Rota("sqlite:///:memory:").tasks:
        app.tasks.add(Task(task.function, name=task.name, options=task.options))
    assert app.tasks.names == ["rota.command", "rota.http"]


async def test_a_call_says_status_time_and_the_beginning(app: Rota) -> None:
    async with serving(reply(b"hello" * 1_000)) as server:
        run = await ended(
            app, url=f"{server.url}/x", method="POST", body="what", headers={"X-Mine": "yes"}, timeout="5s"
        )
    assert run.state == "succeeded", run.error
    result = json.loads(run.result or "")
    assert (result["status"], result["bytes"], result["start"]) == (200, 5_000, ("hello" * 1_000)[:1_000])
    assert result["seconds"] >= 0
    (asked,) = server.asked
    assert (asked.method, asked.target, asked.body, asked.headers["x-mine"]) == ("POST", "/x", b"what", "yes")


@pytest.mark.parametrize(("expect", "state"), [(None, "failed"), ([200], "failed"), ([404, 410], "succeeded")])
async def test_a_status_that_nobody_expects_is_a_failure(app: Rota, expect: list[int] | None, state: str) -> None:
    async with serving(reply(b"no such page", status="404 Not Found")) as server:
        run = await ended(app, url=f"{server.url}/s3cret", expect=expect)
    assert run.state == state
    if run.error is not None:
        assert "unexpected status: 404: no such page" in run.error.message
        assert "s3cret" not in str(run.error)


async def test_a_call_is_signed_with_the_runs_own_id(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_SECRET_SHOP", SECRET)
    async with serving() as server:
        named = {"secret": "ROTA_SECRET_SHOP"}
        run = await ended(app, url=server.url, method="POST", body="{}", **named)
    assert rota.notify.verify(SECRET, server.asked[0].headers, server.asked[0].body) == f"rota-run-{run.id}"


async def test_a_secret_in_a_header_is_named_and_never_kept(app: Rota, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROTA_SECRET_SHOP", "s3cret")
    async with serving(reply(b"you said s3cret")) as server:
        run = await ended(app, url=server.url, headers={"Authorization": "Bearer {ROTA_SECRET_SHOP}"})
    assert server.asked[0].headers["authorization"] == "Bearer s3cret"
    assert json.loads(run.result or "")["start"] == "you said …"
    assert "s3cret" not in f"{run.args}{run.result}"


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (lambda url: {"url": url, "secret": "PATH"}, "begins with ROTA_SECRET_"),
        (lambda url: {"url": url, "headers": {"A": "{ROTA_SECRET_NONE}"}}, "is not set"),
        (lambda _: {"url": "http://169.254.169.254/"}, "is not public"),
        (lambda _: {"url": "file:///etc/passwd"}, "is not called"),
        (lambda url: {"url": url, "expect": [1]}, "use statuses"),
        (lambda url: {"url": url, "headers": {"A": "{PATH}", "B": "x\ny"}}, "has a wrong value"),
    ],
)
async def test_what_is_wrong_fails_with_the_reason(
    app: Rota, args: Callable[[str], dict[str, Any]], problem: str
) -> None:
    async with serving() as server:
        run = await ended(app, **args(server.url))
        assert server.hits == 0
    assert run.state == "failed"
    assert run.error is not None
    assert problem in run.error.message


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.org/",
        "http://127.1/",
        "http://169.254.169.254/",
        "http://[::1]/",
        "http://a:22/",
    ],
)
def test_an_address_that_nobody_may_call_is_refused_when_the_call_is_made(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROTA_ALLOW_NETWORKS", raising=False)
    with pytest.raises(rota.RotaError):
        Rota("sqlite://").tasks.get("rota.http").call(url)
    assert Rota("sqlite://").tasks.get("rota.http").call("https://example.org/feed").name == "rota.http"
