"""The samples of docs/how-to/how-fast-and-why.md run as they stand, on real stores. What they measure is not judged."""

import re
from pathlib import Path
from typing import Any

import pytest
from tests.servers import ROOT

import rota

PAGE = (ROOT / "docs" / "how-to" / "how-fast-and-why.md").read_text()
SAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def page(app: rota.Rota) -> dict[str, Any]:
    known: dict[str, Any] = {"app": app, "rota": rota, "__name__": "page"}
    for each in SAMPLES:
        exec(compile(each, "page", "exec"), known)  # noqa: S102 (it is our own)
    return known


@pytest.mark.parametrize(
    ("name", "ways"),
    [
        ("batches", ["one by one", "at the same time", "enqueue_many"]),
        ("slots", ["1 slots", "10 slots"]),
        ("kinds", ["async def", "def"]),
        ("results", ["1 characters", "10000 characters"]),
        ("limits", ["free", "limited"]),
    ],
)
async def test_what_the_page_measures_is_stored_and_worked_off(
    app: rota.Rota, page: dict[str, Any], name: str, ways: list[str]
) -> None:
    found = await page[name](4)
    assert list(found) == ways
    expected = "ready" if name == "batches" else "succeeded"
    assert [each.state for each in await app.runs.list()] == [expected] * 4 * len(ways)


async def test_durability_is_measured_on_files_of_its_own(page: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "measured.db"
    assert list(await page["durability"](file, 3)) == ["as it comes", "?synchronous=full"]
    async with rota.Rota(f"sqlite:///{file}") as other:
        assert len(await other.runs.list()) == 6


def test_every_sample_is_run_here() -> None:
    measured = set(re.findall(r"^async def (\w+)\(.*many\)", "\n".join(SAMPLES), flags=re.MULTILINE))
    assert measured == {"batches", "slots", "kinds", "results", "limits", "durability"}
