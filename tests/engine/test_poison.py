"""What is in the store is data: whatever somebody writes there, it is never code."""

import base64
import json
import pickle  # noqa: TID251 (it is what is put there)
from pathlib import Path
from typing import Any

import pytest
from tests.stores import ask

from rota.app import Rota


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return Path.touch, (self.path,)


def poisons(canary: Path) -> list[str]:
    touch = f"__import__('pathlib').Path({str(canary)!r}).touch()"
    return [
        base64.b64encode(pickle.dumps(Touch(canary))).decode(),
        pickle.dumps(Touch(canary), 0).decode(),
        json.dumps({"py/object": "pathlib.Path", "py/reduce": [{"py/function": "builtins.eval"}, [touch]]}),
        json.dumps({"feed_id": {"py/eval": touch}}),
        json.dumps({"feed_id": touch}),
        f"!!python/object/apply:builtins.eval ['{touch}']",
        touch,
        '{"feed_id": NaN}',
        "",
    ]


@pytest.mark.parametrize("number", range(9))
async def test_arguments_that_are_no_arguments_fail_and_nothing_is_executed(
    app: Rota, tmp_path: Path, number: int
) -> None:
    canary = tmp_path / "canary"

    @app.task(name="refresh")
    async def refresh(feed_id: int) -> int:
        return feed_id

    bad, good = await refresh.enqueue(1), await refresh.enqueue(2)
    poison = poisons(canary)[number]
    await ask(app.database, "UPDATE rota_runs SET args = :args WHERE id = :id", args=poison, id=bad.id)
    assert (await app.tick()).outcomes == {"failed": 1, "succeeded": 1}
    assert (await app.runs.get(bad.id)).state == "failed"
    assert await app.runs.result(good.id) == 2
    assert not canary.exists()
