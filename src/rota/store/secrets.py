"""Secrets that all servers on one store share; each is made when it is first asked for."""

import secrets

from rota.db.database import Database, Operation


def secret(database: Database, name: str) -> Operation[bytes]:
    """Return the secret of this name."""
    rows = yield database.query("secrets.get", name=name, value=secrets.token_hex(32))
    return bytes.fromhex(rows[0]["value"])
