"""The samples of docs/how-to/write-an-application.md make an application that works, as they stand."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from tests.servers import ROOT

import rota
from rota.doctor import examine

PAGE = (ROOT / "docs" / "how-to" / "write-an-application.md").read_text()


def blocks(kind: str) -> list[str]:
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """The package that the page builds, in files, and installed."""
    package = tmp_path / "watch"
    for each in blocks("sql"):
        file = package / each.splitlines()[0].removeprefix("-- ")
        file.parent.mkdir(parents=True)
        file.write_text(each)
        (file.parent / "__init__.py").write_text("")
    *code, including, test = blocks("python")
    (package / "__init__.py").write_text("\n\n".join([*code, test]))
    (package / "including.py").write_text(f"from watch import *\nimport os\nstore = os.environ['STORE']\n{including}")
    info = tmp_path / "watch-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: watch\nVersion: 1.0\n")
    entry = blocks("toml")[0].replace('[project.entry-points."rota.applications"]', "[rota.applications]")
    (info / "entry_points.txt").write_text(entry.replace('"', ""))
    return tmp_path


@pytest.fixture
def watch(package: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(package)
    for name in [each for each in sys.modules if each.partition(".")[0] == "watch"]:
        del sys.modules[name]
    return importlib.import_module("watch")


async def test_its_own_test_passes(watch: Any) -> None:
    await watch.test_a_host_that_does_not_answer_is_noted()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_it_has_a_route_a_metric_and_a_word_for_the_doctor(
    watch: Any, kind: str, tmp_path: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STORE", f"sqlite:///{tmp_path}/rota.db" if kind == "sqlite" else postgres_database)
    app: rota.Rota = importlib.import_module("watch.including").app
    api = FastAPI()
    api.state.rota = app
    api.include_router(watch.routes, prefix="/api")
    with TestClient(api) as web:
        assert web.portal is not None
        web.portal.call(app.__aenter__)
        assert [web.post("/api/watch/nowhere.invalid").json()["new"] for _ in range(2)] == [True, False]
        assert [each.key for each in web.portal.call(app.schedules.list)] == ["watch-nowhere.invalid"]
        (family,) = web.portal.call(watch.metrics, app)
        assert [sample.value for sample in family.samples] == [1]
        web.portal.call(app.schedules.trigger, "watch-nowhere.invalid")
        web.portal.call(app.tick)
        found = web.portal.call(examine, app)
        assert "hosts that do not answer: 1" in [each.what for each in found if not each.ok]
        web.portal.call(app.__aexit__)


def test_it_has_a_command(package: Path) -> None:
    def run(*words: str) -> str:
        command = [sys.executable, "-m", "rota", "watch", *words]
        return subprocess.run(command, cwd=package, capture_output=True, text=True, check=True).stdout

    store = f"sqlite:///{package}/rota.db"
    assert run("add", "example.org", "--store", store) == "watched\n"
    assert run("add", "example.org", "--store", store) == "watched already\n"
