"""Settings from the environment."""

import os
from typing import TYPE_CHECKING

from rota.errors import Invalid
from rota.times.choices import one_of, whole_number
from rota.times.durations import duration
from rota.times.moments import DAY, SECOND
from rota.times.policies import Length

if TYPE_CHECKING:
    from pydantic import SecretStr

LOG_LEVELS = ("debug", "info", "warning", "error")
KEEP = 14 * DAY
"""How long ended runs are kept unless somebody says otherwise."""

LEAST_TOKEN = 16
REQUESTS_A_MINUTE = 6_000


def store_url() -> str:
    """Return where the state is: `ROTA_STORE`, or a file in the working directory."""
    return os.environ.get("ROTA_STORE") or "sqlite:///rota.db"


def server_url() -> str | None:
    """Return the server that commands ask: `ROTA_URL`."""
    return os.environ.get("ROTA_URL") or None


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
    return [name for each in _listed("ROTA_HOSTS") for name in each.split()]


def insecure() -> bool:
    """Tell whether the operator lets a server without a token listen beyond this machine: `ROTA_INSECURE=1`."""
    return os.environ.get("ROTA_INSECURE") == "1"


def log_level(usual: str) -> str:
    """Return from which level on commands log: `ROTA_LOG_LEVEL`, or what is usual for the command."""
    found = (os.environ.get("ROTA_LOG_LEVEL") or usual).lower()
    one_of("ROTA_LOG_LEVEL", found, LOG_LEVELS, Invalid)
    return found


def log_format(*, terminal: bool) -> str:
    """Return how commands write their log: `ROTA_LOG_FORMAT`, or text on a terminal and JSON elsewhere."""
    found = os.environ.get("ROTA_LOG_FORMAT") or ("text" if terminal else "json")
    one_of("ROTA_LOG_FORMAT", found, ("json", "text"), Invalid)
    return found


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


def metrics_schedules() -> int:
    """Return how many schedules have metrics of their own, `ROTA_METRICS_SCHEDULES`; beyond, they are by task."""
    given = os.environ.get("ROTA_METRICS_SCHEDULES") or "1000"
    found = int(given) if given.isascii() and given.isdigit() else -1
    whole_number("ROTA_METRICS_SCHEDULES", given if found < 0 else found, 0, 100_000, Invalid)
    return found


def allow_networks() -> list[str]:
    """Return the networks beside the public ones that may be called: `ROTA_ALLOW_NETWORKS`, with commas between."""
    return _listed("ROTA_ALLOW_NETWORKS")


def notify() -> list[str]:
    """Return where people are told: the targets in `ROTA_NOTIFY`, with spaces between."""
    return os.environ.get("ROTA_NOTIFY", "").split()


def smtp_url() -> str | None:
    """Return who takes the mail of mailto: targets: `ROTA_SMTP`."""
    return os.environ.get("ROTA_SMTP") or None


def webhook_secret() -> str | None:
    """Return what signs for webhooks whose address holds no secret: `ROTA_WEBHOOK_SECRET`."""
    return os.environ.get("ROTA_WEBHOOK_SECRET") or None


def allow_commands() -> list[str]:
    """Return the programs that the task rota.command may run: `ROTA_ALLOW_COMMANDS`, with commas between."""
    return _listed("ROTA_ALLOW_COMMANDS")


def _listed(name: str) -> list[str]:
    """Return what a setting lists, with commas between; a path may hold spaces."""
    return [each.strip() for each in os.environ.get(name, "").split(",") if each.strip()]
