"""What a long-running command says about itself, on standard error."""

import logging


def configure_logs(level: int = logging.INFO) -> None:
    """Write log lines with their time and level."""
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
