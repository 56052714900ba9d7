"""What a long-running command says about itself, on standard error."""

import logging

from rota.cli.output import safe


class _Plain(logging.Formatter):
    """Text from outside cannot drive the terminal from the log either; lines stay lines."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n".join(map(safe, super().format(record).split("\n")))


def configure_logs(level: int = logging.INFO) -> None:
    """Write log lines with their time and level."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Plain("%(asctime)s %(levelname)s %(name)s %(message)s"))
    logging.basicConfig(level=level, handlers=[handler])
