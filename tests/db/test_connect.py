"""From a store's address to its database."""

import sys
from pathlib import Path

import pytest

from rota.db.connect import database, masked
from rota.db.sqlite import SqliteDatabase
from rota.errors import Invalid, MissingExtra


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///rota.db", "rota.db"),
        ("sqlite:///data/rota.db", "data/rota.db"),
        ("sqlite:////var/lib/rota.db", "/var/lib/rota.db"),
        ("sqlite:///my%20data/50%25.db", "my data/50%.db"),
        ("sqlite:///rota.db?synchronous=full", "rota.db"),
        ("sqlite://", None),
        ("sqlite:///", None),
        ("sqlite:///:memory:", None),
    ],
)
def test_an_address_names_a_file_or_memory(url: str, path: str | None) -> None:
    found = database(url, [])
    assert isinstance(found, SqliteDatabase)
    assert found._path == path


@pytest.mark.parametrize(("url", "level"), [("", 1), ("?synchronous=normal", 1), ("?synchronous=full", 2)])
async def test_a_file_can_be_made_to_survive_a_power_cut(tmp_path: Path, url: str, level: int) -> None:
    found = database(f"sqlite:///{tmp_path}/rota.db{url}", [])
    assert isinstance(found, SqliteDatabase)
    await found.open()
    assert found._connections[0].execute("PRAGMA synchronous").fetchone() == (level,)
    await found.close()


@pytest.mark.parametrize(
    "url",
    [
        "",
        "rota.db",
        "sqlite:rota.db",
        "sqlite:/rota.db",
        "sqlite://rota.db",
        "mysql://localhost/rota",
        "sqlite:///rota.db?synchronous=off",
        "sqlite:///rota.db?mode=ro",
        "redis://localhost",
    ],
)
def test_what_is_no_address_is_refused_with_what_is_allowed(url: str) -> None:
    with pytest.raises(Invalid, match=r"^store: .*; (use sqlite:///file\.db|the only option is synchronous)"):
        database(url, [])


@pytest.mark.parametrize("scheme", ["postgres", "postgresql"])
def test_postgres_has_two_names(scheme: str) -> None:
    assert database(f"{scheme}://rota@localhost/rota", []).dialect == "postgres"


def test_without_its_extra_postgres_is_refused_in_one_line_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    monkeypatch.delitem(sys.modules, "rota.db.postgres", raising=False)
    with pytest.raises(MissingExtra) as caught:
        database("postgresql://localhost/rota", [])
    assert (
        str(caught.value) == "a store on PostgreSQL needs an extra that is not installed: pip install 'rota[postgres]'"
    )


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("mysql://me:secret@host/x", "mysql://me:…@host/x"),
        ("mysql://me@host/x", "mysql://me@host/x"),
        ("mysql://me:sec/re@t@host/x", "mysql://me:…@host/x"),
        ("mysql://:secret@host/x", "mysql://:…@host/x"),
        ("mysql://host/x?user=me&password=secret&a=b", "mysql://host/x?user=me&password=…&a=b"),
        ("mysql://host/x?sslpassword=secret", "mysql://host/x?sslpassword=…"),
        ("sqlite:////a:b/c@d.db?x=y", "sqlite:////a:b/c@d.db?x=y"),
    ],
)
def test_an_address_is_shown_without_its_password(url: str, shown: str) -> None:
    assert masked(url) == shown
    with pytest.raises(Invalid) as caught:
        database(url, [])
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("url", ["postgresql://me:canary/x@host/db", "postgresql://me:can[ary@host/db"])
def test_a_password_that_breaks_its_address_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(Invalid, match="in a password as %2F") as caught:
        database(url, [])
    assert "can" not in str(caught.value).split(";")[0].replace("cannot", "")
