"""The decision: what fires, what is skipped and why, and what is next.

The table of states is in docs/reference/due.md. Everything here is pure: the engine only carries out what this says.
"""

from rota.times.anchored import decide_anchored
from rota.times.decision import Decision, Past
from rota.times.fixed import decide_fixed
from rota.times.intervals import Every
from rota.times.moments import Instant
from rota.times.plain import decide_plain
from rota.times.policies import Policies
from rota.times.rule import Rule


def decide(key: str, rule: Rule, policies: Policies, past: Past, now: Instant) -> Decision:
    """Decide about every due instant up to now that has no answer yet."""
    if isinstance(rule, Every) and rule.anchored:
        return decide_anchored(key, rule, policies, past, now)
    return decide_plain(rule, policies, past, now) or decide_fixed(key, rule, policies, past, now)
