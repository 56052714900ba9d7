"""Commands over a server: the same words, the same answers as on its store; what it refuses is one line."""

import asyncio
import http.server
import inspect
import io
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest
from tests.server.live import Live, live
from tests.server.serving import Served

import rota
from rota import cli
from rota.app import Rota
from rota.cli.remote import Remote

JOBS = """
import rota

app = rota.Rota()

@app.schedule("f1", rota.Cron("@daily"))
@app.task(name="refresh")
def refresh(feed_id: int = 0) -> int:
    return feed_id
"""
EVIL = "\x1b[2J[red]\x9b2J\nsecond"
ESCAPED = r"\x1b[2J[red]\x9b2J\nsecond"
ANCHORED = "Every('15m', since='success')"


@pytest.fixture
def app(store: str) -> Rota:
    """An app with a task that fails when it is told to, and says what a terminal should not hear."""
    app = Rota(store, name="news")

    @app.task(name="refresh", queue="feeds", timeout="30s", retry=rota.Retry(attempts=2, first="1h"))
    def refresh(feed_id: int = 0, password: str = "") -> dict[str, int]:
        if feed_id < 0:
            raise ValueError(EVIL)
        return {"feed": feed_id}

    return app


@pytest.fixture
def server(app: Rota, monkeypatch: pytest.MonkeyPatch) -> Iterator[Live]:
    with live(app) as found:
        monkeypatch.setenv("ROTA_TOKEN", found.token)
        yield found


def typed(*words: str, said: str = "") -> tuple[int, str, str]:
    """Type a command; returns its exit code, what it says, and what it complains about."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        patch.setattr(sys, "argv", ["rota", *words])
        patch.setattr(sys, "stdin", io.StringIO(said))
        with pytest.raises(SystemExit) as stopped:
            cli.main()
    return int(stopped.value.code or 0), out.getvalue(), err.getvalue()


def done(*words: str) -> str:
    """Type a command that is to be done."""
    code, shown, error = typed(*words)
    assert (code, error) == (0, ""), words
    return shown


def happen(app: Rota, store: str) -> None:
    """Let all happen once that is due, in another process so to say, and look for troubles."""

    async def tick() -> None:
        async with Rota(store, name="news") as beside:
            beside.tasks = app.tasks
            await beside.tick(queues=["feeds"])
            await beside.alerts.check()

    asyncio.run(tick())


@pytest.fixture
def url(app: Rota, server: Live, store: str) -> str:
    """A server with schedules, runs and limits that were made over it; some of it has happened."""
    url = ("--url", server.url)
    policies = "--overlap queue_one --grace 1h --spread 5m --max-runs 9 --double-from 3 --alert-after 2 --attempts 4"
    more = ["--tags", "a,b", "--limits", "host:x", "--priority", "high", "--timeout", "10s", "--description", "news"]
    exclude = ("--exclude", "Cron('@yearly')")
    args = ("--args", '{"feed_id": 7}')
    done("schedules", "add", "f1", "refresh", ANCHORED, *args, *policies.split(), *more, *exclude, *url)
    done("schedules", "add", "f2", "refresh", "0 9 * * MON", "--tz", "Europe/Berlin", "--note", "for ann", *url)
    broken = ("--args", '{"feed_id": -1}', "--adaptive", "--tags", "b")
    done("schedules", "add", "f3", "refresh", ANCHORED, *broken, *url)
    done("schedules", "pause", "f2", "--note", "moving", "--until", "2099-01-01T00:00Z", *url)
    done("schedules", "change", "f1", "--cap", "2h", "--retry-cap", "5m", *url)
    done("limits", "put", "host:*", "--at-once", "1", "--gap", "1.5s", "--keys-at-once", "3", *url)
    happen(app, store)
    return server.url


LOOKS = [
    ("schedules", "list"),
    ("schedules", "list", "--tag", "b", "--after", "f1", "--limit", "1", "--app", "news"),
    ("schedules", "show", "f2"),
    ("schedules", "show", "f3"),
    ("schedules", "revisions", "f1"),
    ("schedules", "revisions", "f1", "--before", "2"),
    ("schedules", "firings", "f3"),
    ("upcoming",),
    ("upcoming", "f2", "--limit", "3"),
    ("runs", "list", "--schedule", "f3"),
    ("runs", "list", "--state", "waiting", "--since", "2020-01-01T00:00Z", "--before", "99", "--text", "refr"),
    ("runs", "hours"),
    ("runs", "statistics", "--queue", "feeds"),
    ("limits", "list"),
    ("alerts", "--over"),
    ("queues",),
    ("workers", "list"),
    ("tokens", "list"),
]


def test_every_look_shows_the_same_as_on_the_store(url: str, store: str) -> None:
    for words in LOOKS:
        here, there = (done(*words, "--json", *where) for where in (("--store", store), ("--url", url)))
        assert json.loads(here) == json.loads(there), words
    for words in (("why", "f2"), ("why", "f3")):
        assert done(*words, "--store", store) == done(*words, "--url", url)
    (failed,) = json.loads(done("runs", "list", "--schedule", "f3", "--json", "--url", url))
    shown = [
        json.loads(done("runs", "show", str(failed["id"]), "--json", *w)) for w in (("--store", store), ("--url", url))
    ]
    assert shown[0] == shown[1]
    assert shown[1]["attempts"][0]["error"].startswith("ValueError")
    examined = [typed("doctor", "--json", *where)[:2] for where in (("--store", store), ("--url", url))]
    assert examined[0] == examined[1]


def test_a_long_list_is_whole_over_its_pages(app: Rota, server: Live, store: str) -> None:
    async def fill() -> None:
        async with Rota(store, name="news") as beside:
            many = [rota.Schedule(f"s{n:03}", app.tasks.get("refresh").call(), rota.Every("1h")) for n in range(450)]
            await beside.schedules.put_many(many)

    asyncio.run(fill())
    look = ("schedules", "list", "--json", "--url", server.url)
    keys = [each["key"] for each in json.loads(done(*look, "--limit", "1000"))]
    assert keys == [f"s{n:03}" for n in range(450)]
    assert [each["key"] for each in json.loads(done(*look, "--limit", "201", "--after", "s100"))] == keys[101:302]


def test_orders_are_done_and_answered_as_on_the_store(url: str) -> None:
    def say(*words: str) -> str:
        return done(*words, "--url", url).strip()

    assert say("schedules", "pause", "f1") == "f1 is paused"
    assert say("schedules", "pause", "f1").startswith("f1 was paused already")
    assert say("schedules", "resume", "f1") == "f1 goes on"
    assert say("schedules", "resume", "f1") == "f1 was not held"
    assert say("schedules", "pause", "--tag", "b", "--note", "all") == "2 schedules were paused"
    assert say("schedules", "resume", "--prefix", "f") == "3 schedules go on"
    assert say("schedules", "change", "f1", "--queue", "slow") == "f1 is changed"
    assert say("schedules", "change", "f1", "--queue", "slow") == "f1 was so already"
    assert say("schedules", "change", "--tag", "b", "--pause-after", "9") == "2 schedules were changed"
    assert say("schedules", "change", "f2", "--args", '{"feed_id": 5}') == "f2 is changed"
    assert say("schedules", "spread", "--tag", "b", "--window", "10m").endswith("spread over 10m")
    month = ("--start", "2026-10-01T00:00Z", "--end", "2026-11-01T00:00Z")
    assert say("schedules", "backfill", "f2", *month).startswith("4 runs, from run ")
    code, _, error = typed("schedules", "trigger", "f2", "--url", url)
    assert (code, error.startswith("rota: no run: its overlap policy lets none in while run ")) == (1, True)
    (shown,) = [json.loads(say("schedules", "show", "f1", "--json"))]
    assert (shown["queue"], shown["policies"]["on_failure"]) == (
        "slow",
        "double_from 3, pause_after 9, alert_after 2, cap 2h",
    )
    assert (shown["retry"], shown["limits"]) == ("attempts 4, first 1s, factor 2, cap 5m, jitter 0.1", ["host:x"])
    (first, *_) = json.loads(say("schedules", "revisions", "f1", "--json"))
    assert (first["by"], first["what"]) == ("ROTA_TOKEN", "spread")
    waiting = json.loads(say("runs", "list", "--schedule", "f2", "--json"))[-1]["id"]
    assert say("runs", "cancel", str(waiting), "--note", "not now") == f"run {waiting} is cancelled"
    assert say("runs", "retry", str(waiting)).startswith(f"run {waiting} is ")
    assert typed("runs", "retry", str(waiting), "--url", url)[0] == 1
    assert say("schedules", "pause", "--all", "--note", "storm") == "everything is paused"
    assert say("schedules", "list").startswith("Everything is paused by ROTA_TOKEN since ")
    assert say("schedules", "resume", "--all").startswith("everything goes on")
    assert say("schedules", "remove", "f1") == "f1 is removed"
    assert say("schedules", "remove", "--prefix", "f", "--yes") == "2 schedules were removed"
    assert say("limits", "remove", "host:*") == "host:* is not limited any more"
    token = say("tokens", "create", "ann", "--role", "operate", "--expires", "90d")
    assert token.startswith("rota_")
    assert typed("tokens", "revoke", "ann", "--url", url, said="n\n")[0] == 1
    assert typed("tokens", "revoke", "ann", "--url", url, said="y\n")[1].strip() == "ann is revoked"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("schedules", "show", "nope"), "there is no schedule 'nope'"),
        (("schedules", "add", "f1", "refresh", "@daily"), "there is a schedule 'f1' already"),
        (("schedules", "add", "f9", "refrsh", "@daily"), "is it refresh?"),
        (("schedules", "add", "f9", "refresh", "@daily", "--args", '{"feed": 1}'), "'feed' is not expected"),
        (("schedules", "change", "f1", "--queue", "x", "--version", "77"), "is not the newest"),
        (("schedules", "pause", "f1", "--by", "somebody-else"), "the server writes down the name of the token"),
        (("schedules", "list", "--state", "asleep"), "state: Input should be"),
        (("upcoming", "--limit", "300"), "limit: "),
        (("runs", "show", "999"), "there is no 999"),
        (("runs", "retry", "999"), "there is no 999"),
        (("limits", "remove", "none"), "no limit was put under 'none'"),
        (("tokens", "revoke", "none", "--yes"), "none"),
        (("workers", "drain", "none"), "none"),
    ],
)
def test_what_a_server_refuses_is_one_line(words: tuple[str, ...], said: str, refusing: str) -> None:
    code, shown, error = typed(*words, "--url", refusing)
    assert (code, shown, error.count("\n")) == (1, "", 1)
    assert said in error


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """A server in a process of its own, and the token that it made."""
    folder = tmp_path_factory.mktemp("process")
    (folder / "jobs.py").write_text(JOBS)
    with Served("jobs:app", "--no-worker", cwd=folder) as served:
        yield served.address(), served.token()


@pytest.fixture
def refusing(process: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """Where it is, for whoever has its token."""
    url, token = process
    monkeypatch.setenv("ROTA_TOKEN", token)
    return url


def test_who_may_not_is_told_what_to_do(refusing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = done("tokens", "create", "reader", "--url", refusing).strip()
    for token, words, said in (
        (None, ("queues",), "set ROTA_TOKEN"),
        ("rota_" + "x" * 43, ("queues",), "the server does not know ROTA_TOKEN"),
        (reader, ("schedules", "pause", "f1"), "a token whose role reaches further"),
        (reader, ("tokens", "list"), "a token whose role reaches further"),
        ("short", ("queues",), "ROTA_TOKEN"),
    ):
        if token is None:
            monkeypatch.delenv("ROTA_TOKEN")
        else:
            monkeypatch.setenv("ROTA_TOKEN", token)
        code, shown, error = typed("--debug", *words, "--url", refusing)
        assert (code, shown) == (1, ""), words
        assert said in error.splitlines()[-1]
        assert token is None or token not in error


class _Stranger(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(302 if "workers" in self.path else 200)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.end_headers()
        self.wfile.write(b"{}" if "queues" in self.path else b"<html>\x1b[2J")

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def stranger() -> Iterator[str]:
    """Something that answers, and is not Rota."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Stranger) as found:
        thread = threading.Thread(target=found.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{found.server_port}"
        found.shutdown()
        thread.join()


def test_what_is_no_server_of_rotas_is_one_line(stranger: str) -> None:
    for words in (("runs", "list"), ("workers", "list"), ("queues",)):
        code, shown, error = typed(*words, "--url", stranger)
        assert (code, shown, error.count("\n")) == (1, "", 1), words
        assert "server of Rota's" in error
    code, _, error = typed("queues", "--url", "http://127.0.0.1:1")
    assert (code, error.count("\n"), "is it running?" in error) == (1, 1, True)


@pytest.mark.parametrize("url", ["http://", "http://a:b@127.0.0.1:1", "http://h:99999", "http://h/?x=1", "http://h/#x"])
def test_an_address_that_is_none_is_one_line(url: str) -> None:
    code, _, error = typed("queues", "--url", url)
    assert (code, error.count("\n"), "a:b" in error) == (1, 1, False)


def test_one_place_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"sqlite:///{tmp_path}/rota.db"
    assert typed("queues", "--store", store, "--url", "http://127.0.0.1:1")[0] == 2
    server = ("--app", "none:app", "--url", "http://127.0.0.1:1")
    assert typed("schedules", "add", "a", "refresh", "@daily", *server)[0] == 2
    monkeypatch.setenv("ROTA_URL", "http://127.0.0.1:1")
    assert "no server answers" in typed("queues")[2]
    monkeypatch.setenv("ROTA_STORE", store)
    code, _, error = typed("queues")
    assert (code, "say --store or --url" in error) == (1, True)
    done("migrate")
    assert done("queues", "--store", store, "--json") == "[]\n"


def test_text_from_outside_drives_no_terminal_over_a_server_either(app: Rota, server: Live, store: str) -> None:
    where = ("--url", server.url)
    done("schedules", "add", "e", "refresh", ANCHORED, "--args", '{"feed_id": -1}', "--description", EVIL, *where)
    done("schedules", "pause", "e", "--note", EVIL, *where)
    done("schedules", "resume", "e", "--note", EVIL, *where)
    happen(app, store)
    looks = [
        ("schedules", "show", "e"),
        ("schedules", "firings", "e"),
        ("schedules", "revisions", "e"),
        ("runs", "list"),
    ]
    for words in (*looks, ("runs", "show", "1"), ("why", "e")):
        for more in ((), ("--json",)):
            shown = done(*words, *more, *where)
            assert {"\x1b", "\x9b"}.isdisjoint(shown), words
            assert all(each.isprintable() for each in shown.replace("\n", "")), words
    shown = done("schedules", "show", "e", *where)
    assert f"description: {ESCAPED}" in shown.splitlines()
    code, _, error = typed("schedules", "show", EVIL, *where)
    assert (code, error.count("\n"), "\x1b" in error) == (1, 1, False)


def verbs(kind: Any) -> dict[str, Any]:
    return {name: each for name, each in vars(kind).items() if inspect.isfunction(each) and not name.startswith("_")}


def test_a_server_is_asked_with_the_words_of_a_store(tmp_path: Path) -> None:
    store, server = Rota(f"sqlite:///{tmp_path}/rota.db"), Remote("http://127.0.0.1:1")
    nouns = ("schedules", "runs", "limits", "tokens", "alerts")
    for here, there in [(store, server), *((getattr(store, noun), getattr(server, noun)) for noun in nouns)]:
        for name, verb in verbs(type(there)).items():
            if name == "examine":
                continue  # what `rota.doctor` does
            own = inspect.signature(getattr(type(here), name)).parameters
            for parameter in inspect.signature(verb).parameters.values():
                assert (own[parameter.name].kind, own[parameter.name].default) == (parameter.kind, parameter.default)
