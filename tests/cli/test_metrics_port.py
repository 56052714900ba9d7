"""`--metrics-port`: a worker that Prometheus can ask, with a token."""

import asyncio
import os
import socket
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import httpx2
import pytest

TOKEN = "a-token-for-this-test"  # noqa: S105 (it opens nothing)
JOBS = 'import rota\napp = rota.Rota("sqlite:///rota.db", name="news")\n'


@pytest.mark.parametrize("command", ["worker", "scheduler"])
async def test_a_process_without_http_shows_its_metrics_to_who_brings_a_token(tmp_path: Path, command: str) -> None:
    (tmp_path / "jobs.py").write_text(JOBS)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    line = (sys.executable, "-m", "rota", command, "jobs:app", "--metrics-port", str(port))
    environment = os.environ | {"ROTA_TOKEN": TOKEN}
    process = await asyncio.create_subprocess_exec(*line, cwd=tmp_path, stdout=PIPE, stderr=PIPE, env=environment)
    try:
        assert process.stdout is not None
        assert await process.stdout.readline()  # it has said that it works
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as client:
            stranger = await asked(client, {})
            known = await asked(client, {"Authorization": f"Bearer {TOKEN}"})
    finally:
        process.terminate()
    _, err = await process.communicate()
    assert (process.returncode, b"Traceback" in err) == (0, False), err
    assert stranger.status_code == 401
    assert known.status_code == 200
    assert known.headers["content-type"].startswith("text/plain")
    assert f'rota_workers{{state="alive"}} {float(command == "worker")}' in known.text


async def asked(client: httpx2.AsyncClient, headers: dict[str, str]) -> httpx2.Response:
    """Ask until somebody listens."""
    while True:
        try:
            return await client.get("/metrics", headers=headers)
        except httpx2.ConnectError:
            await asyncio.sleep(0)


async def test_a_port_that_is_taken_is_refused_with_one_line(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text(JOBS)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = (sys.executable, "-m", "rota", "worker", "jobs:app", "--metrics-port", str(port))
        process = await asyncio.create_subprocess_exec(*line, cwd=tmp_path, stdout=PIPE, stderr=PIPE)
        _, err = await process.communicate()
    assert process.returncode == 1
    assert err.decode() == (f"rota: --metrics-port: '127.0.0.1:{port}' cannot be listened on; Address already in use\n")
