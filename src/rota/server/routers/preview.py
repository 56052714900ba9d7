"""`/api/preview`: what a rule means, and what an edit of a schedule would do, before anything is done."""

from datetime import datetime
from typing import Literal

from fastapi import APIRouter
from pydantic import Field

from rota.app import Rota
from rota.busy import MINUTE
from rota.server.auth import Reader
from rota.server.here import Here
from rota.server.problems import responses
from rota.server.routers.in_time import ahead
from rota.server.routers.parts import Given, Key, Moment, Told
from rota.server.routers.rules import RuleIn, RuleOut, rule_of, rule_out
from rota.store.schedule_reads import ScheduleState
from rota.times import Cron, Rule, clock_changes
from rota.times.intervals import Every
from rota.times.moments import DAY, LATEST, SECOND, Instant, instant, moment
from rota.times.policies import MOST_EXCLUDED, Policies
from rota.times.words import moment_words

router = APIRouter(prefix="/preview", tags=["preview"])

MOST = 100
_LONGEST = 3_660 * DAY


class PreviewIn(Given):
    """A rule to look at; with a key, as an edit of that schedule."""

    rule: RuleIn
    exclude: list[RuleIn] | None = Field(
        default=None,
        max_length=MOST_EXCLUDED,
        description="Rules of what is left out; null: as the schedule has.",
    )
    key: Key | None = Field(default=None, description="The schedule that it is to be the rule of.")
    after: Moment | None = Field(default=None, description="From when on; now if left out.")
    until: Moment | None = Field(default=None, description="Up to when; a year from then, and ten years at most.")
    count: int = Field(default=5, ge=1, le=MOST, description="How many instants.")


class InstantOut(Told):
    """An instant that the rule names."""

    at: datetime = Field(description="In the rule's zone.")
    words: str = Field(examples=["Sun 28 Mar 2027 03:00 CEST"])
    in_seconds: int = Field(description="How far it is from now.")


class ClockChangeOut(Told):
    """A clock change that touches the rule."""

    at: datetime
    kind: Literal["gap", "repeat"]
    note: str = Field(examples=["02:30 does not exist on Sun 28 Mar 2027; fires at 03:00"])


class EditOut(Told):
    """What an edit of a schedule would do, among the instants that both rules were looked at for."""

    adds: list[datetime] = Field(description="Due instants that would be new.")
    drops: list[datetime] = Field(description="Due instants that would be gone.")
    fires_now: bool = Field(description="Whether it would be due at once.")
    next_due: datetime | None = Field(description="When it would be due next.")
    was_due: datetime | None = Field(description="When it is due next as it is.")


class MinuteOut(Told):
    """A minute, and how many schedules are due in it."""

    at: datetime
    count: int


class PreviewOut(Told):
    """What a rule means."""

    rule: RuleOut
    rule_text: str = Field(description="The rule as Rota writes it.")
    words: str = Field(description="The rule in English.", examples=["At 09:00, every Monday, Berlin time"])
    notes: list[str] = Field(description="What people often take for something else.")
    instants: list[InstantOut] = Field(description="The next instants; none where it counts from the last run.")
    clock_changes: list[ClockChangeOut] = Field(description="Clock changes until then that touch the rule.")
    edit: EditOut | None = Field(description="With a key: what the edit would do.")
    busy: list[MinuteOut] = Field(description="How many schedules are due in each of the next 60 minutes.")
    busy_complete: bool = Field(description="Whether all schedules were counted to the end.")


@router.post("", operation_id="preview", responses=responses(404))
async def preview(wanted: PreviewIn, here: Here, _: Reader) -> PreviewOut:
    """Say what a rule means, when it is due next, which clock changes touch it, and what an edit would do.

    Nothing is changed. A rule that takes more than 50 ms to say what is next is refused.
    """
    known = None if wanted.key is None else await here.schedules.get(wanted.key)
    rule, exclude = rule_of(wanted.rule), _exclude(wanted, known)
    now = instant(here.database.clock.now())
    start = now if wanted.after is None else instant(wanted.after, "after")
    end = _end(wanted.until, start)
    named = [] if _anchored(rule) else ahead(rule, exclude, start, end, wanted.count)
    changes = clock_changes(rule, moment(start), moment(max(start, min(end, start + 366 * DAY))))
    busy = await here.schedules.busy()
    return PreviewOut(
        rule=rule_out(rule),
        rule_text=str(rule),
        words=rule.words(),
        notes=_notes(rule),
        instants=[_told(each, rule, now) for each in named],
        clock_changes=[ClockChangeOut.model_validate(each) for each in changes],
        edit=None if known is None else await _edit(here, known, rule, exclude, now),
        busy=[
            MinuteOut(at=moment(instant(busy.start) + number * MINUTE), count=count)
            for number, count in enumerate(busy.counts)
        ],
        busy_complete=busy.complete,
    )


def _exclude(wanted: PreviewIn, known: ScheduleState | None) -> tuple[Rule, ...]:
    if wanted.exclude is not None:
        return Policies(exclude=[rule_of(each) for each in wanted.exclude]).exclude
    return () if known is None else known.policies.exclude


def _end(until: datetime | None, start: Instant) -> Instant:
    """Return up to when to look: what is wanted, but not too far."""
    wanted = start + 366 * DAY if until is None else instant(until, "until")
    return min(wanted, start + _LONGEST, LATEST)


def _told(found: Instant, rule: Rule, now: Instant) -> InstantOut:
    at = moment(found, rule.tzinfo)
    return InstantOut(at=at, words=moment_words(at), in_seconds=(found - now) // SECOND)


async def _edit(here: Rota, known: ScheduleState, rule: Rule, exclude: tuple[Rule, ...], now: Instant) -> EditOut:
    """Compare what a schedule is with what it would be."""
    would = await here.schedules.preview(known.key, rule=rule, exclude=exclude)
    old, new = _following(known, now), _following(would, now)
    full = [each[-1] for each in (old, new) if len(each) == MOST]  # beyond these not both were looked at
    end = min(full, default=LATEST)
    adds = sorted(set(new) - set(old))
    drops = sorted(set(old) - set(new))
    return EditOut(
        adds=[moment(each) for each in adds if each <= end],
        drops=[moment(each) for each in drops if each <= end],
        fires_now=would.state == "active" and would.next_due is not None and instant(would.next_due) <= now + SECOND,
        next_due=would.next_due,
        was_due=known.next_due,
    )


def _following(known: ScheduleState, now: Instant) -> list[Instant]:
    """Return the due instants of a schedule from its next on, as many as are compared."""
    if known.next_due is None:
        return []
    first = instant(known.next_due)
    if _anchored(known.rule):
        return [first]
    return [first, *ahead(known.rule, known.policies.exclude, max(first, now), now + _LONGEST, MOST - 1)]


def _anchored(rule: Rule) -> bool:
    return isinstance(rule, Every) and rule.anchored


def _notes(rule: Rule) -> list[str]:
    return rule.notes() if isinstance(rule, Cron) else []
