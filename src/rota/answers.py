"""What became of a due instant, and what a schedule does now, in words."""

from datetime import datetime

from rota.schedule import read_rule
from rota.store.schedule_reads import FiringState, HeldState, RuleThen, ScheduleState
from rota.times.decision import Reason
from rota.times.intervals import Every
from rota.times.moments import Instant, instant, moment
from rota.times.rule import Rule

_REASONS: dict[Reason, str] = {
    "overlap": "a run of the schedule was under way, and the policy let no other in",
    "missed": "its time passed while nothing could fire it, and the policy does not catch up with it",
    "merged": "one newer run does its work too",
    "paused": "somebody had paused the schedule",
    "excluded": "an exclude rule names it",
    "parked": "the schedule's task or arguments did not resolve then",
    "backing off": "the schedule was failing, or its last run asked to be run later",
}


def now_words(found: ScheduleState) -> str:
    """Say what a schedule does now, and why."""
    if found.held is not None:
        return f"it is {held_words(found.held)}"
    if found.state in ("finished", "retired"):
        return {"finished": "its rule names no further instant", "retired": "it is gone from the code"}[found.state]
    if found.next_due is None:
        return "a run of it is under way; it counts from its end"
    backing = f"; it failed {found.failures} times in a row" if found.failures else ""
    return f"it is due next at {_shown(found.next_due)}{backing}"


def held_words(held: HeldState) -> str:
    """Say what is held, by whom, until when, and why."""
    who = "" if held.by is None else f" by {held.by}"
    until = "" if held.until is None else f" until {_shown(held.until)}"
    return f"{held.reason}{who}{until}" + (f": {held.note}" if held.note else "")


def answer_words(
    answer: FiringState | None, known: ScheduleState | None, then: RuleThen, at: Instant, now: Instant
) -> str:
    """Say what came of a due instant, as far as that is known."""
    if answer is not None and answer.run is not None:
        return f"run {answer.run} stands for it: {answer.state}"
    if answer is not None and answer.reason is not None:
        others = "" if answer.count == 1 else f", with {answer.count - 1} others"
        return f"skipped{others}: {answer.reason}, {_REASONS[answer.reason]}"
    if then.state == "forgotten":
        return "what the schedule was then is older than what is kept"
    if then.made is not None:
        return f"the schedule was made later, at {_shown(then.made)}"
    if known is not None and at > now:
        return "it lies ahead" + ("" if known.next_due is None else f"; the next one is {_shown(known.next_due)}")
    rule = read_rule(then.rule) if then.rule is not None else known.rule if known is not None else None
    if rule is None:
        return "there was no such schedule then: it had been removed"
    return _unnamed_words(rule, at) or _unanswered_words(known, then, rule, at)


def _unnamed_words(rule: Rule, at: Instant) -> str | None:
    """Say that a rule does not name an instant; None where it does, or may."""
    if (isinstance(rule, Every) and rule.anchored) or rule.series.next(at - 1) == at:
        return None
    near = [_shown(moment(each)) for each in (rule.series.previous(at), rule.series.next(at)) if each is not None]
    return f"the rule then, {rule}, did not name it; it names {' and '.join(near) or 'nothing near'}"


def _unanswered_words(known: ScheduleState | None, then: RuleThen, rule: Rule, at: Instant) -> str:
    """Say why nothing is recorded of an instant that the rule names."""
    anchored = isinstance(rule, Every) and rule.anchored
    if then.removed is not None:
        return f"nothing is recorded of it; the schedule was removed at {_shown(then.removed)}"
    if known is not None and known.answered_through is not None and at <= instant(known.answered_through):
        return "it had its answer, which is older than what is kept"
    if anchored:
        return "it counts from its last run, and was not due then"
    return "it is due, and not yet fired: is a scheduler running?"


def _shown(when: datetime) -> str:
    return when.isoformat(sep=" ", timespec="seconds")
