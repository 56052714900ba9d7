"""What became of a due instant, and what a schedule does now, in words."""

from datetime import datetime

from rota.schedule import read_rule
from rota.store.schedule_reads import FiringState, HeldState, ScheduleState
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
    answer: FiringState | None, known: ScheduleState | None, rule: str | None, at: Instant, now: Instant
) -> str:
    """Say what came of a due instant, as far as that is known."""
    if answer is not None and answer.run is not None:
        return f"run {answer.run} stands for it: {answer.state}"
    if answer is not None and answer.reason is not None:
        others = "" if answer.count == 1 else f", with {answer.count - 1} others"
        return f"skipped{others}: {answer.reason}, {_REASONS[answer.reason]}"
    if known is None:
        return "nothing is known of it any more"
    if rule == "":
        return f"the schedule was made later, at {_shown(known.created_at)}"
    if at > now:
        return "it lies ahead" + ("" if known.next_due is None else f"; the next one is {_shown(known.next_due)}")
    return _unanswered_words(known, known.rule if rule is None else read_rule(rule), at)


def _unanswered_words(known: ScheduleState, rule: Rule, at: Instant) -> str:
    """Say why nothing is recorded of an instant under the rule that held then."""
    anchored = isinstance(rule, Every) and rule.anchored
    if not anchored and rule.series.next(at - 1) != at:
        near = [_shown(moment(each)) for each in (rule.series.previous(at), rule.series.next(at)) if each is not None]
        return f"the rule then, {rule}, did not name it; it names {' and '.join(near) or 'nothing near'}"
    if known.answered_through is not None and at <= instant(known.answered_through):
        return "it had its answer, which is older than what is kept"
    if anchored:
        return "it counts from its last run, and was not due then"
    return "it is due, and not yet fired: is a scheduler running?"


def _shown(when: datetime) -> str:
    return when.isoformat(sep=" ", timespec="seconds")
