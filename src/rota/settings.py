"""Settings from the environment."""

import os

from rota.times.durations import duration
from rota.times.moments import DAY, SECOND
from rota.times.policies import Length

KEEP = 14 * DAY
"""How long ended runs are kept unless somebody says otherwise."""


def store_url() -> str:
    """Return where the state is: `ROTA_STORE`, or a file in the working directory."""
    return os.environ.get("ROTA_STORE") or "sqlite:///rota.db"


def keep(given: Length | None) -> int:
    """Return how long ended runs are kept: what is given, or `ROTA_KEEP`, or 14 days; in microseconds."""
    named = os.environ.get("ROTA_KEEP")
    if given is not None:
        return duration(given, "keep", least=60 * SECOND, most=3_653 * DAY)
    return duration(named, "ROTA_KEEP", least=60 * SECOND, most=3_653 * DAY) if named else KEEP


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
    """Return what a setting lists, with commas or spaces between."""
    return os.environ.get(name, "").replace(",", " ").split()
