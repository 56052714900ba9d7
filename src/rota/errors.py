"""Every error of Rota's, as a tree.

RotaError
├── Invalid (a ValueError)      a value that was given is not allowed: `.field`, `.value`, `.allowed`
│   ├── InvalidDuration         a length of time
│   ├── InvalidMoment           a point in time: naive, unreadable, or out of range
│   ├── InvalidPolicy           a policy of a schedule
│   ├── InvalidRule             a cron expression, an interval, a calendar, or a rule's text
│   └── InvalidZone             a time zone
└── MissingExtra (an ImportError)   a part of Rota that was not installed: `.extra`
"""


class RotaError(Exception):
    """Something that Rota cannot do, said in one line."""


class Invalid(RotaError, ValueError):
    """A value that was given is not allowed; the message names the field, the value and what is allowed."""

    def __init__(self, field: str, value: object, allowed: str, problem: str = "is not allowed") -> None:
        super().__init__(field, value, allowed, problem)
        self.field = field
        self.value = value
        self.allowed = allowed
        self.problem = problem

    def __str__(self) -> str:
        """Say it in one line, whatever the value holds."""
        return f"{self.field}: {_shown(self.value)} {self.problem}; {self.allowed}"


class InvalidDuration(Invalid):
    """A length of time that cannot be read or is out of bounds."""


class InvalidMoment(Invalid):
    """A point in time that is naive, unreadable or out of range."""


class InvalidPolicy(Invalid):
    """A policy of a schedule that does not exist or does not fit the others."""


class InvalidRule(Invalid):
    """A rule that cannot be read or never names an instant."""


class InvalidZone(Invalid):
    """A time zone that is not in the IANA database."""


class MissingExtra(RotaError, ImportError):
    """A part of Rota that was not installed."""

    def __init__(self, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs an extra that is not installed: pip install 'rota[{extra}]'")
        self.extra = extra
        self.purpose = purpose


def _shown(value: object, most: int = 80) -> str:
    text = ascii(value) if isinstance(value, str) else repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"
