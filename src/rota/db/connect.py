"""From a store's address to its database."""

import re
from collections.abc import Sequence
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

from rota import clock
from rota.db.database import Database
from rota.db.sqlite import SqliteDatabase
from rota.db.statements import Statements
from rota.errors import Invalid, MissingExtra

_CREDENTIALS = re.compile(r"(://[^:@/]*:).*@", re.DOTALL)
_PASSWORD = re.compile(r"((?:^|[?&\s])(?:\w*password|passfile|sslkey)=)[^&\s]*", re.IGNORECASE)
_ALLOWED = "use sqlite:///file.db, sqlite:// for memory, or postgresql://user@host/name"


def database(url: str, packages: Sequence[str]) -> Database:
    """Return the database of an address, with the statements of these packages; it is not opened yet."""
    parts = _parts(url)
    if url.startswith("sqlite://") and not parts.netloc:
        options = parse_qs(parts.query)
        unknown = set(options) - {"synchronous"}
        if unknown or options.get("synchronous", ["normal"])[0] not in ("normal", "full"):
            raise Invalid("store", url, "the only option is synchronous=full, which also survives a power cut")
        path = None if is_memory(url) else unquote(parts.path)[1:]
        durable = "synchronous" in options and options["synchronous"][0] == "full"
        return SqliteDatabase(path, Statements(packages, "sqlite", None), clock.micros, durable=durable)
    if parts.scheme in ("postgres", "postgresql"):
        try:
            from rota.db.postgres import NOW, PostgresDatabase  # noqa: PLC0415 (asyncpg is an extra)
        except ModuleNotFoundError:
            raise MissingExtra("postgres", "a store on PostgreSQL") from None
        return PostgresDatabase(url, Statements(packages, "postgres", NOW), None)
    raise Invalid("store", masked(url), _ALLOWED, "is no address of a store")


def is_memory(url: str) -> bool:
    """Tell whether this is the address of a store that ends with its process."""
    return url.startswith("sqlite://") and unquote(urlsplit(url).path)[1:] in ("", ":memory:")


def masked(url: str) -> str:
    """Return an address without its password, wherever in it that is, and however badly it is written."""
    return _PASSWORD.sub(r"\1…", _CREDENTIALS.sub(r"\1…@", url))


def _parts(url: str) -> SplitResult:
    """Take an address apart; one that cannot be is refused without showing what may be secret."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        allowed = f"{_ALLOWED}; write / # ? @ : and % in a password as %2F %23 %3F %40 %3A %25"
        raise Invalid("store", masked(url), allowed, "cannot be read") from None
    return parts
