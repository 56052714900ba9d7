"""The repository's own files, for the tests that read them."""

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def modules(under: str) -> dict[str, ast.Module]:
    """Parse every Python file below a folder; keys are paths from the root."""
    paths = sorted((ROOT / under).rglob("*.py"))
    assert paths, f"there is no Python below {under}"
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in paths}


def text_files() -> Iterator[tuple[str, str]]:
    """Yield path and text of all that is in the repository or could be added: what .gitignore does not name."""
    patterns = [line for line in (ROOT / ".gitignore").read_text().splitlines() if line and not line.startswith("#")]
    for path in _files(ROOT, [".git", *patterns]):
        try:
            yield str(path.relative_to(ROOT)), path.read_text()
        except UnicodeDecodeError:
            continue


def _files(folder: Path, patterns: list[str]) -> Iterator[Path]:
    for path in sorted(folder.iterdir()):
        if any(_matches(path, pattern) for pattern in patterns):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _files(path, patterns)
        elif path.is_file():
            yield path


def _matches(path: Path, pattern: str) -> bool:
    if pattern.endswith("/") and not path.is_dir():
        return False
    bare = pattern.rstrip("/")
    return fnmatch(f"/{path.relative_to(ROOT)}", bare) if bare.startswith("/") else fnmatch(path.name, bare)


def dotted_names(tree: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield each name and attribute with what it stands for: after `import time as t`, `t.time` is "time.time"."""
    origins = dict(_imports(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute) and (name := _dotted(node, origins)):
            yield node, name


def _imports(tree: ast.AST) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield (alias.asname, alias.name) if alias.asname else (alias.name.partition(".")[0],) * 2
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"


def _dotted(node: ast.expr, origins: dict[str, str]) -> str | None:
    if isinstance(node, ast.Name):
        return origins.get(node.id, node.id)
    if isinstance(node, ast.Call):
        return _dotted(node.func, origins)
    if isinstance(node, ast.Attribute) and (value := _dotted(node.value, origins)):
        return f"{value}.{node.attr}"
    return None
