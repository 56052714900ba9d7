"""An app on a disk that fills up: `python -m tests.journeys.small_disk disk|files FOLDER` says as JSON what came of it.

The disk is a small one of this process's own where the system lets it have one. Elsewhere, and for `files`, it is the
files that may not grow: for SQLite that is an error of the disk as well. Room comes when a ballast is thrown away, or
the bound.
"""

import asyncio
import ctypes
import json
import os
import resource
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import rota

SIZE = 1_500_000
LEASE = 1.0
CLONE_NEWNS, CLONE_NEWUSER = 0x00020000, 0x10000000


def own_disk(folder: Path) -> bool:
    """Put a small disk of memory there, for this process alone; False where that is not allowed."""
    libc = ctypes.CDLL(None, use_errno=True)
    user, group = os.getuid(), os.getgid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS):
        return False
    try:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"0 {user} 1")
        Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    except OSError:
        return False
    return not libc.mount(b"tmpfs", bytes(folder), b"tmpfs", 0, f"size={SIZE}".encode())


def small(kind: str, folder: Path) -> tuple[str, Callable[[], None]]:
    """Make the disk small; returns how, and what makes room again."""
    if kind == "disk" and own_disk(folder):
        ballast = folder / "ballast"
        ballast.write_bytes(b"x" * (SIZE // 2))
        return "own disk", ballast.unlink
    most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (SIZE // 2, most))
    return "bounded files", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))


async def main(kind: str, folder: Path) -> dict[str, object]:
    how, make_room = small(kind, folder)
    app = rota.Rota(f"sqlite:///{folder}/rota.db")

    @app.task(max_lost=1_000)
    async def keep(text: str) -> int:
        return len(text)

    accepted: list[int] = []
    refusals: list[str] = []
    async with app.running(lease=LEASE) as worker:
        while len(refusals) < 5:
            try:
                accepted.append((await app.enqueue(keep.call("x" * 20_000))).id)
            except rota.StoreUnavailable as error:
                refusals.append(str(error))
                await asyncio.sleep(LEASE / 2)  # meanwhile the worker does without its lease
        make_room()
        while True:
            try:
                accepted.append((await app.enqueue(keep.call("again"))).id)
                break
            except rota.StoreUnavailable:
                await asyncio.sleep(0.05)
        states = {(await app.runs.wait(run, timeout="30s")).state for run in accepted}
        fenced = worker.fenced
    with sqlite3.connect(folder / "rota.db") as file:
        integrity = file.execute("PRAGMA integrity_check").fetchone()[0]
        stored = [row[0] for row in file.execute("SELECT id FROM rota_runs ORDER BY id")]
    return {
        "how": how,
        "accepted": len(accepted),
        "refusals": refusals,
        "states": sorted(states),
        "integrity": integrity,
        "exact": stored == accepted,
        "fenced": fenced,
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(main(sys.argv[1], Path(sys.argv[2])))) + "\n")
