"""SQL in files: named blocks, in the words of each database."""

import sys
from pathlib import Path

import pytest

from rota.db.statements import Dialect, Statements, written

each_dialect = pytest.mark.parametrize("dialect", ["sqlite", "postgres"])


def blocks(folder: Path, dialect: Dialect, text: str, now: str | None = None) -> Statements:
    """Read a text as a package of SQL files."""
    name = f"sql_{folder.name}".replace("-", "_")
    package = folder / name
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / "some.sql").write_text(text)
    sys.path.insert(0, str(folder))
    try:
        return Statements([name], dialect, now)
    finally:
        sys.path.remove(str(folder))
        sys.modules.pop(name, None)


@each_dialect
def test_a_file_holds_named_blocks(tmp_path: Path, dialect: Dialect) -> None:
    found = blocks(tmp_path, dialect, "-- Whatever stands before.\n-- name: a.one\nSELECT 1\n\n-- name: b\nSELECT 2\n")
    assert found.names() == ["a.one", "b"]
    assert (found["a.one"].text, found["b"].text) == ("SELECT 1", "SELECT 2")


def test_each_database_has_its_own_words_where_they_differ(tmp_path: Path) -> None:
    text = "-- name: x @sqlite\nSELECT 'lite'\n-- name: x @postgres\nSELECT 'post'\n-- name: y @postgres\nSELECT 3\n"
    assert blocks(tmp_path, "sqlite", text)["x"].text == "SELECT 'lite'"
    assert blocks(tmp_path, "postgres", text)["x"].text == "SELECT 'post'"
    assert blocks(tmp_path, "sqlite", text).names() == ["x"]


def test_two_blocks_of_one_name_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="two blocks are named x"):
        blocks(tmp_path, "sqlite", "-- name: x\nSELECT 1\n-- name: x @sqlite\nSELECT 2\n")


@pytest.mark.parametrize(
    ("text", "sqlite", "postgres", "parameters"),
    [
        ("SELECT :a, :b", "SELECT ?1, ?2", "SELECT $1, $2", ("a", "b")),
        ("SELECT :a, :b, :a", "SELECT ?1, ?2, ?1", "SELECT $1, $2, $1", ("a", "b")),
        ("SELECT :a::text[]", "SELECT ?1::text[]", "SELECT $1::text[]", ("a",)),
        ("SELECT x::bigint", "SELECT x::bigint", "SELECT x::bigint", ()),
        ("SELECT ':a', :b", "SELECT ':a', ?1", "SELECT ':a', $1", ("b",)),
        ("SELECT 'it''s :a', :b", "SELECT 'it''s :a', ?1", "SELECT 'it''s :a', $1", ("b",)),
        ("SELECT '12:30', :b_2", "SELECT '12:30', ?1", "SELECT '12:30', $1", ("b_2",)),
        ("SELECT 1 WHERE x>:a", "SELECT 1 WHERE x>?1", "SELECT 1 WHERE x>$1", ("a",)),
        ("-- says :a\nSELECT 1", "SELECT 1", "SELECT 1", ()),
        ("-- it's\nSELECT :a -- it's :b", "SELECT ?1", "SELECT $1", ("a",)),
        ("SELECT '-- :a', :b", "SELECT '-- :a', ?1", "SELECT '-- :a', $1", ("b",)),
    ],
)
def test_parameters_are_bound_by_name(text: str, sqlite: str, postgres: str, parameters: tuple[str, ...]) -> None:
    for dialect, expected in (("sqlite", sqlite), ("postgres", postgres)):
        found = written("some", text, dialect, None)  # type: ignore[arg-type]
        assert (found.text.rstrip(), found.parameters) == (expected, parameters)


def test_now_is_the_databases_own_where_it_has_an_expression() -> None:
    own = written("some", "SELECT :now + :a, ':now'", "postgres", "clock()")
    assert (own.text, own.parameters) == ("SELECT clock() + $1, ':now'", ("a",))
    given = written("some", "SELECT :now + :a", "sqlite", None)
    assert (given.text, given.parameters) == ("SELECT ?1 + ?2", ("now", "a"))


LOCKS = {"runs.lock_key", "limits.alone", "limits.try_alone"}
"""What only PostgreSQL needs: SQLite has one writer."""


@each_dialect
def test_the_engines_own_blocks_are_the_same_on_each_database(dialect: Dialect) -> None:
    names = set(Statements(["rota.store.sql"], dialect, None).names())
    assert names >= {"runs.insert", "runs.claim", "runs.settle", "runs.admit", "runs.lost", "workers.leases"}
    assert names ^ set(Statements(["rota.store.sql"], "sqlite", None).names()) <= LOCKS | {"runs.last_id"}
