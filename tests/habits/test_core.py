"""The core of Rota needs what it declares and nothing else: its wheel, beside the runtime requirements alone."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tests.habits.source import ROOT

# Prints the interpreter of the environment that scripts/serve runs in; makes it first where it is missing.
RUNTIME = 'source scripts/lib/environment.sh && environment serve && printf %s "$python"'

# The tools that built the editable install stand in that environment too: for the core they do not exist.
EXTRAS = ("rota.db.pool", "rota.db.postgres", "rota.notify.mail", "rota.notify.services", "rota.pytest_plugin")
"""The modules that need an extra."""

IMPORT_EVERYTHING = f"""
EXTRAS = {EXTRAS!r}
import importlib, pkgutil, sys
for tool in ("editables", "hatchling", "packaging", "pathspec", "pip", "pluggy", "setuptools", "trove_classifiers"):
    sys.modules[tool] = None
import rota
for module in pkgutil.walk_packages(rota.__path__, "rota."):
    if module.name not in ("rota.__main__", *EXTRAS):
        importlib.import_module(module.name)
        print(module.name)
print(rota.__file__)
"""


@pytest.fixture(scope="module")
def runtime() -> str:
    return run("bash", "-c", RUNTIME)


@pytest.fixture(scope="module")
def unpacked_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder))
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


@pytest.mark.xdist_group("core")
def test_every_module_imports_with_the_runtime_requirements_alone(runtime: str, unpacked_wheel: Path) -> None:
    *imported, origin = run(runtime, "-c", IMPORT_EVERYTHING, path=unpacked_wheel).splitlines()
    written = {name_of(path) for path in (ROOT / "src" / "rota").rglob("*.py")}
    assert {"rota", "rota.__main__", *EXTRAS, *imported} == written
    assert Path(origin).is_relative_to(unpacked_wheel)


@pytest.mark.xdist_group("core")
def test_the_command_runs_with_the_runtime_requirements_alone(runtime: str, unpacked_wheel: Path) -> None:
    assert "rota [OPTIONS] COMMAND" in run(runtime, "-m", "rota", "--help", path=unpacked_wheel)


def name_of(path: Path) -> str:
    words = path.relative_to(ROOT / "src").with_suffix("").parts
    return ".".join(words[:-1] if words[-1] == "__init__" else words)


def run(*command: str, path: Path | None = None) -> str:
    """Run in the root, or with a folder in front of the installed packages; return what it prints."""
    place = {"cwd": ROOT} if path is None else {"cwd": path, "env": {"PYTHONPATH": str(path)}}
    done = subprocess.run(command, capture_output=True, text=True, check=False, **place)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()
