"""Settings from the environment."""

import os


def store_url() -> str:
    """Return where the state is: `ROTA_STORE`, or a file in the working directory."""
    return os.environ.get("ROTA_STORE") or "sqlite:///rota.db"
