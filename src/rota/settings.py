"""Settings from the environment."""

import os
from typing import TYPE_CHECKING

from rota.errors import Invalid
from rota.times.durations import duration
from rota.times.moments import DAY, SECOND
from rota.times.policies import Length

if TYPE_CHECKING:
    from pydantic import SecretStr

KEEP = 14 * DAY
"""How long ended runs are kept unless somebody says otherwise."""

LEAST_TOKEN = 16
REQUESTS_A_MINUTE = 6_000


def store_url() -> str:
    """Return where the state is: `ROTA_STORE`, or a file in the working directory."""
    return os.environ.get("ROTA_STORE") or "sqlite:///rota.db"


def keep(given: Length | None) -> int:
    """Return how long ended runs are kept: what is given, or `ROTA_KEEP`, or 14 days; in microseconds."""
    named = os.environ.get("ROTA_KEEP")
    if given is not None:
        return duration(given, "keep", least=60 * SECOND, most=3_653 * DAY)
    return duration(named, "ROTA_KEEP", least=60 * SECOND, most=3_653 * DAY) if named else KEEP


def requests_a_minute() -> int:
    """Return how many requests a caller may make in a minute, `ROTA_REQUESTS_PER_MINUTE`; 0 means any number."""
    given = os.environ.get("ROTA_REQUESTS_PER_MINUTE")
    if not given:
        return REQUESTS_A_MINUTE
    if not given.isascii() or not given.isdigit() or len(given) > 9:
        raise Invalid("ROTA_REQUESTS_PER_MINUTE", given, "use a whole number; 0 for no limit")
    return int(given)


def hosts() -> list[str]:
    """Return the names by which a server may be called besides those of its own machine, `ROTA_HOSTS`."""
    return [name for name in os.environ.get("ROTA_HOSTS", "").replace(",", " ").split() if name]


def insecure() -> bool:
    """Tell whether the operator lets a server without a token listen beyond this machine: `ROTA_INSECURE=1`."""
    return os.environ.get("ROTA_INSECURE") == "1"


def token() -> "SecretStr | None":
    """Return the admin token that the operator gives, `ROTA_TOKEN`."""
    given = os.environ.get("ROTA_TOKEN")
    if not given:
        return None
    if len(given) < LEAST_TOKEN or not given.isascii() or not given.isprintable() or " " in given:
        allowed = f"use at least {LEAST_TOKEN} printable ASCII characters without spaces, such as openssl rand -hex 32"
        raise Invalid("ROTA_TOKEN", "what it holds", allowed, "is no token")
    from pydantic import SecretStr  # noqa: PLC0415 (it is slow to import, and few need it)

    return SecretStr(given)
