"""What became of a due instant, and what a schedule does now, in words."""

from datetime import datetime

from rota.schedule import read_rule
from rota.store.schedule_reads import FiringState, HeldState, RuleThen, ScheduleState
from rota.times.decision import Reason
from rota.times.intervals import Every
from rota.times.moments import SECOND, Instant, instant, moment
from rota.times.rule import Rule

_LATE = 60 * SECOND
_ALL_MADE = "the schedule has made all the runs that it may"
_REASONS: dict[Reason, str] = {
    "overlap": "a run of the schedule was under way, and the policy let no other in",
    "missed": "its time passed while nothing could fire it, and the policy does not catch up with it",
    "merged": "one newer run does its work too",
    "paused": "somebody had paused the schedule",
    "excluded": "an exclude rule names it",
    "parked": "the schedule's task or arguments did not resolve then",
    "backing off": "the schedule was failing, or its last run asked to be run later",
}


def now_words(found: ScheduleState, now: Instant) -> str:
    """Say what a schedule does now, and why."""
    if found.held is not None:
        return f"it is {held_words(found.held)}"
    if found.state == "retired":
        return "it is gone from the code"
    if found.state == "finished":
        return _ALL_MADE if _has_made_all(found) else "its rule names no further instant"
    if found.next_due is None:
        under_way = "a run of it is under way; it counts from its end"
        return under_way if _is_anchored(found.rule) else "all that its rule names is excluded, as far as one can see"
    backing = f"; it failed {found.failures} times in a row" if found.failures else ""
    if instant(found.next_due) < now - _LATE:
        return f"it was due at {_shown(found.next_due)} and is not yet fired: is a scheduler running?{backing}"
    return f"it is due next at {_shown(found.next_due)}{backing}"


def held_words(held: HeldState) -> str:
    """Say what is held, by whom, until when, and why."""
    who = "" if held.by is None else f" by {held.by}"
    until = "" if held.until is None else f" until {_shown(held.until)}"
    return f"{held.reason}{who}{until}" + (f": {held.note}" if held.note else "")


def answer_words(
    answer: FiringState | None,
    known: ScheduleState | None,
    then: RuleThen,
    everything: HeldState | None,
    at: Instant,
    now: Instant,
) -> str:
    """Say what came of a due instant, as far as that is known. `everything` is the pause of all, if there is one."""
    rule = read_rule(then.rule) if then.rule is not None else known.rule if known is not None else None
    if answer is not None and answer.run is not None:
        return f"run {answer.run} stands for it: {answer.state}"
    if answer is not None and answer.reason is not None:
        between = answer.first is not None and instant(answer.first) < at < instant(answer.due)
        unnamed = _unnamed_words(rule, at) if between and rule is not None else None
        if unnamed is not None:  # it lies between others that were skipped
            return unnamed
        others = "" if answer.count == 1 else f", with {answer.count - 1} others"
        return f"skipped{others}: {answer.reason}, {_REASONS[answer.reason]}"
    if then.state == "forgotten":
        return "what the schedule was then is older than what is kept"
    if then.made is not None:
        return f"the schedule was made later, at {_shown(then.made)}"
    if known is not None and at > now:
        return "it lies ahead" + ("" if known.next_due is None else f"; the next one is {_shown(known.next_due)}")
    if rule is None:
        return "there was no such schedule then: it had been removed"
    return _unnamed_words(rule, at) or _held_then(known, everything, at) or _unanswered_words(known, then, rule, at)


def _held_then(known: ScheduleState | None, everything: HeldState | None, at: Instant) -> str | None:
    """Say that an instant came under a pause or parking that is not over; None where it did not."""
    for what, held in (("the schedule", None if known is None else known.held), ("everything", everything)):
        if held is not None and held.since is not None and instant(held.since) <= at:
            return f"{what} is {held_words(held)}; it is recorded as skipped when that ends"
    return None


def _unnamed_words(rule: Rule, at: Instant) -> str | None:
    """Say that a rule does not name an instant; None where it does, or may."""
    if _is_anchored(rule) or rule.series.next(at - 1) == at:
        return None
    near = [_shown(moment(each)) for each in (rule.series.previous(at), rule.series.next(at)) if each is not None]
    return f"the rule then, {rule}, did not name it; it names {' and '.join(near) or 'nothing near'}"


def _unanswered_words(known: ScheduleState | None, then: RuleThen, rule: Rule, at: Instant) -> str:
    """Say why nothing is recorded of an instant that the rule names."""
    if then.removed is not None:
        return f"nothing is recorded of it; the schedule was removed at {_shown(then.removed)}"
    if known is not None and known.answered_through is not None and at <= instant(known.answered_through):
        return "it had its answer, which is older than what is kept"
    if known is not None and known.state == "finished" and _has_made_all(known):
        return _ALL_MADE
    if _is_anchored(rule):
        return "it counts from its last run, and was not due then"
    return "it is due, and not yet fired: is a scheduler running?"


def _is_anchored(rule: Rule) -> bool:
    return isinstance(rule, Every) and rule.anchored


def _has_made_all(known: ScheduleState) -> bool:
    return known.policies.max_runs is not None and known.own_runs >= known.policies.max_runs


def _shown(when: datetime) -> str:
    return when.isoformat(sep=" ", timespec="seconds")
