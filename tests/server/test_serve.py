"""`rota serve`: one process that serves, fires and works; it is closed to strangers and ends in order."""

import asyncio
import re
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from tests.server import shop
from tests.server.serving import Served

import rota
from rota.app import store_database
from rota.server.serve import Serving, _listener

TOKEN = "0123456789abcdef"  # noqa: S105 (it opens nothing)
ANYWHERE = "0.0.0.0"  # noqa: S104 (it is what is refused)


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    started: list[Served] = []

    def start(*words: str, **env: str) -> Served:
        started.append(Served(*words, cwd=tmp_path, **env))
        return started[-1]

    yield start
    for each in started:
        each.__exit__()


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def wait_for(path: Path, words: str) -> None:
    """Wait until a process has written this; the test's own time limit is the bound."""
    while not path.exists() or words not in path.read_text():
        time.sleep(0.02)


def test_the_first_start_shows_an_admin_token_once_and_it_lets_in(serve: Callable[..., Served]) -> None:
    first = serve()
    address, token = first.address(), first.token()
    assert f"{address}/docs#token={token}" in first.until("log in with it")
    assert httpx2.get(f"{address}/api/tokens", headers=bearer(token)).json()[0]["name"] == "admin"
    assert httpx2.get(f"{address}/api/tokens").status_code == 401
    assert httpx2.get(f"{address}/healthz").json() == {"status": "ok"}
    assert httpx2.get(f"{address}/readyz").json() == {"status": "ok"}
    first.popen.terminate()
    assert first.ended() == (0, "")
    second = serve()
    address = second.address()
    assert "who may ask" in second.until("who may ask")
    assert httpx2.get(f"{address}/api/tokens", headers=bearer(token)).status_code == 200
    second.popen.terminate()
    assert second.ended()[0] == 0
    assert token not in "".join(second.said)


@pytest.mark.parametrize(
    ("host", "words", "env", "refused"),
    [
        (ANYWHERE, (), {}, "nobody has a token; make a token first"),
        ("::", (), {}, "nobody has a token; make a token first"),
        (ANYWHERE, ("--no-auth",), {}, "there is no auth; listen on 127.0.0.1"),
        (ANYWHERE, (), {"ROTA_TOKEN": TOKEN}, None),
        ("::", (), {"ROTA_INSECURE": "1"}, None),
        (ANYWHERE, ("--no-auth",), {"ROTA_INSECURE": "1"}, None),
        (ANYWHERE, (), {"ROTA_TOKEN": "short"}, "use at least 16"),
    ],
)
def test_beyond_this_machine_it_listens_only_where_somebody_has_a_token(
    serve: Callable[..., Served], host: str, words: tuple[str, ...], env: dict[str, str], refused: str | None
) -> None:
    found = serve("--host", host, *words, **env)
    if refused is None:
        assert found.address()
        return
    code, said = found.ended()
    assert code == 1
    assert refused in said
    assert said.count("\n") == 1


def test_a_token_in_the_store_lets_it_listen_beyond_this_machine(serve: Callable[..., Served], tmp_path: Path) -> None:
    async def make() -> None:
        async with rota.Rota(f"sqlite:///{tmp_path}/rota.db") as app:
            await app.tokens.create("ann", "admin")

    asyncio.run(make())
    assert serve("--host", ANYWHERE).address()


def test_a_port_in_use_is_one_clear_line(serve: Callable[..., Served]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, said = serve("--port", str(port)).ended()
    assert (code, said.count("\n")) == (1, 1)
    assert f"port: {port} is in use on 127.0.0.1; stop what listens there, or use another --port" in said


async def test_an_answer_is_sent_at_once_and_waits_for_no_acknowledgement() -> None:
    met: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def meet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        own = writer.get_extra_info("socket")
        met.set_result(own.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    with _listener(Serving(port=0)) as listener:
        async with await asyncio.start_server(meet, sock=listener):
            _, writer = await asyncio.open_connection(*listener.getsockname())
            assert await met
            writer.close()


def test_on_this_machine_it_is_called_by_no_other_name(serve: Callable[..., Served]) -> None:
    found = serve(ROTA_TOKEN=TOKEN, ROTA_HOSTS="rota.example")
    address = found.address()
    port = address.rpartition(":")[2]
    for name, status in (("evil.example", 400), (f"evil.example:{port}", 400), ("", 400), ("rota.example", 200)):
        for path in ("/healthz", "/api/tokens"):
            answer = httpx2.get(f"{address}{path}", headers={"Host": name, **bearer(TOKEN)})
            assert answer.status_code == status, (name, path)
    assert httpx2.get(f"http://localhost:{port}/healthz").status_code == 200


def test_without_auth_whoever_is_here_may_do_all_but_no_page_of_another_place(serve: Callable[..., Served]) -> None:
    address = serve("--no-auth").address()
    assert httpx2.post(f"{address}/api/tokens", json={"name": "x"}).status_code == 201
    for headers in ({"Origin": "https://evil.example"}, {"Origin": "null"}, {"Sec-Fetch-Site": "cross-site"}):
        assert httpx2.post(f"{address}/api/tokens", json={"name": "y"}, headers=headers).status_code == 403
    assert [each["name"] for each in httpx2.get(f"{address}/api/tokens").json()] == ["x"]
    assert httpx2.post(f"{address}/api/tokens", json={"name": "y"}, headers={"Origin": address}).status_code == 201


def test_it_fires_and_works_in_the_same_process(serve: Callable[..., Served], tmp_path: Path) -> None:
    found = serve("tests.server.shop:app")
    found.address()
    while not (tmp_path / "notes").exists() or (tmp_path / "notes").read_text().count("tick") < 2:
        time.sleep(0.02)


@pytest.mark.parametrize("words", [("--no-worker",), ("--no-scheduler",)])
def test_what_it_is_not_to_do_it_does_not(serve: Callable[..., Served], tmp_path: Path, words: tuple[str, ...]) -> None:
    found = serve("tests.server.shop:app", *words)
    found.address()
    store = f"sqlite:///{tmp_path}/shop.db"

    async def look() -> tuple[int, int]:
        app = shop.app.beside(store_database(store))
        async with app:
            if words == ("--no-scheduler",):
                run = await app.enqueue(shop.slow.call(0))
                await app.runs.wait(run.id)
            else:
                while not await app.runs.list():  # noqa: ASYNC110 (another process makes it)
                    await asyncio.sleep(0.02)
            return len(await app.workers()), len(await app.schedules.list())

    assert asyncio.run(look()) == ((0, 1) if words == ("--no-worker",) else (1, 0))


def enqueued_slow(tmp_path: Path, seconds: float) -> int:
    async def put() -> int:
        app = shop.app.beside(store_database(f"sqlite:///{tmp_path}/shop.db"))
        async with app:
            return (await app.enqueue(shop.slow.call(seconds))).id

    return asyncio.run(put())


def state(tmp_path: Path, run: int) -> str:
    async def get() -> str:
        async with rota.Rota(f"sqlite:///{tmp_path}/shop.db") as app:
            return (await app.runs.get(run)).state

    return asyncio.run(get())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_first_signal_waits_for_what_runs(
    serve: Callable[..., Served], tmp_path: Path, number: signal.Signals
) -> None:
    found = serve("tests.server.shop:app")
    address = found.address()
    run = enqueued_slow(tmp_path, 2)
    wait_for(tmp_path / "notes", "slow began")
    found.popen.send_signal(number)
    assert found.ended()[0] == 0
    assert "slow ended" in (tmp_path / "notes").read_text()
    assert state(tmp_path, run) == "succeeded"
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"{address}/healthz")


def test_a_second_signal_gives_back_what_runs(serve: Callable[..., Served], tmp_path: Path) -> None:
    found = serve("tests.server.shop:app")
    address = found.address()
    run = enqueued_slow(tmp_path, 600)
    wait_for(tmp_path / "notes", "slow began")
    found.popen.terminate()
    while True:  # until it has heard the first one
        try:
            httpx2.get(f"{address}/healthz")
        except httpx2.TransportError:
            break
    found.popen.terminate()
    assert found.ended()[0] == 0
    assert state(tmp_path, run) == "ready"


def test_no_secret_is_in_what_it_says(serve: Callable[..., Served], postgres_url: str) -> None:
    away = urlsplit(postgres_url)
    canary = f"postgresql://canary_user:canary_word@{away.hostname}:{away.port}/canary"
    code, said = serve("--store", canary, ROTA_TOKEN="canary_" * 5).ended()
    assert code == 1
    assert "canary_word" not in said
    assert "canary_canary" not in said
    assert said.count("\n") == 1


def test_nothing_that_it_knows_is_left_in_a_core_dump(serve: Callable[..., Served]) -> None:
    found = serve()
    found.address()
    limits = Path(f"/proc/{found.popen.pid}/limits").read_text()
    assert re.search(r"^Max core file size +0 ", limits, flags=re.MULTILINE)
