"""What a rule names, computed in time or refused: nobody's rule holds up the others."""

from rota import clock
from rota.errors import InvalidRule
from rota.times.exclusion import excluded, next_included
from rota.times.moments import Instant
from rota.times.rule import Rule

SECONDS = 0.05
"""How long it may take to find what a rule names."""
_TRIES = 3
"""How often that is tried: a machine may have been busy with something else."""


def ahead(
    rule: Rule, exclude: tuple[Rule, ...], after: Instant, until: Instant | None = None, most: int = 1
) -> list[Instant]:
    """Return the next instants that a rule names and nothing excludes; refuse a rule that takes too long."""
    for _ in range(_TRIES):
        found = _in_time(rule, exclude, after, until, most)
        if found is not None:
            return found
    allowed = "use fewer rules in one, or fewer that exclude"
    raise InvalidRule("rule", rule, allowed, f"takes more than {SECONDS * 1_000:g} ms to say what is next")


def _in_time(
    rule: Rule, exclude: tuple[Rule, ...], after: Instant, until: Instant | None, most: int
) -> list[Instant] | None:
    end = clock.monotonic() + SECONDS
    found: list[Instant] = []
    following = next_included(rule.series, exclude, after)
    while following is not None and len(found) < most and (until is None or following <= until):
        if clock.monotonic() > end:
            return None
        if not excluded(exclude, following):
            found.append(following)
        following = next_included(rule.series, exclude, following)
    return found if clock.monotonic() <= end else None
