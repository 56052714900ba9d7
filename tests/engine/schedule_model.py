"""What schedules mean, as a model for tests: written from the reference, one instant after the other.

It shares no code with the engine (only `spread_offset`, the documented place of a key in a window), and is naive on
purpose: it walks over every second, and remembers every answer. Instants and lengths are whole microseconds.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from rota.times.spread import spread_offset

SECOND = 1_000_000
MINUTE = 60 * SECOND
NORMAL, LOWER = 50, 25
"""The priorities of what is on time, and of what catches up."""
UNDER_WAY = ("waiting", "running")
KEY = "s"
AHEAD = 60 * MINUTE
"""How far to look for the next instant: further than anything that happens here."""


@dataclass(frozen=True)
class Timing:
    """A rule. A fixed series names those seconds whose number, divided by the period, leaves one of the places."""

    period: int
    places: tuple[int, ...] = (0,)
    since: str = "due"
    cron: bool = False
    start: int | None = None
    end: int | None = None

    @property
    def anchored(self) -> bool:
        return self.since != "due"

    @property
    def kind(self) -> str:
        return "cron" if self.cron else "interval"

    def within(self, instant: int) -> int:
        """Move an instant to where the rule's bounds let it be."""
        if self.start is not None and instant < self.start:
            return self.start
        return self.end if self.end is not None and instant > self.end else instant

    def names(self, instant: int) -> bool:
        if instant % SECOND or self.within(instant) != instant:
            return False
        return instant // SECOND % self.period in self.places

    def named(self, after: int, until: int) -> Iterator[int]:
        """Yield what a fixed series names after one instant, up to another."""
        second = after // SECOND + 1
        while second * SECOND <= until:
            if self.names(second * SECOND):
                yield second * SECOND
            second += 1


@dataclass(frozen=True)
class Plan:
    """A rule with its policies."""

    timing: Timing
    overlap: str = "skip"
    max_running: int = 1
    missed: str = "latest"
    max_missed: int = 100
    grace: int | None = None
    spread: int = 0
    no_minutes: tuple[int, ...] = ()
    """The minutes of each hour that are excluded."""
    no_seconds: tuple[int, ...] = ()
    no_moments: tuple[int, ...] = ()
    max_runs: int | None = None
    double_from: int | None = None
    cap: int = 24 * 60 * MINUTE
    pause_after: int | None = None

    @property
    def place(self) -> int:
        """The key's place in the spread."""
        return spread_offset(KEY, self.spread)

    def excludes(self, instant: int) -> bool:
        return (
            instant // MINUTE % 60 in self.no_minutes
            or instant // SECOND % 60 in self.no_seconds
            or instant in self.no_moments
        )

    def first_not_excluded(self, instant: int) -> int:
        while self.excludes(instant):
            instant = instant + 1 if instant in self.no_moments else (instant // SECOND + 1) * SECOND
        return instant

    def lengthened(self, interval: int, failures: int) -> int:
        """Double the interval at the n-th failure and each further one, up to the cap, never below itself."""
        longer = interval
        if self.double_from is not None:
            for _ in range(self.double_from, failures + 1):
                longer = min(longer * 2, max(self.cap, interval))
        return longer


@dataclass
class Work:
    """A run."""

    due: int
    kind: str
    at: int
    """Not before then."""
    priority: int
    state: str = "waiting"
    queued: bool = False
    """Whether it waits for another run of its schedule."""
    ready: bool = False
    """Whether it may begin whatever the clock says."""
    started: int | None = None
    cancelled: bool = False
    """Whether somebody wants it cancelled while it runs."""
    lost: int = 0


@dataclass
class Hold:
    """A time in which the schedule does not fire; None while nobody knows when it ends."""

    reason: str
    until: int | None = None

    def open(self, now: int) -> bool:
        return self.until is None or now < self.until


@dataclass
class Known:
    """A schedule."""

    plan: Plan
    since: int
    """When it was made, or its rule became another."""
    decided: int
    """When it was last said what is next."""
    through: int = 0
    """Up to here every instant has its answer."""
    hold: Hold | None = None
    """The hold that is, or that ended since it was last decided what is next."""
    due: int | None = None
    """The instant of the last run that the rule made."""
    runs: int = 0
    """How many runs the rule made."""
    started: int | None = None
    finished: int | None = None
    succeeded: int | None = None
    failures: int = 0
    asked: int | None = None
    """What the run that ended last asked for."""
    state: str = "active"
    next: int | None = None
    wake: int | None = None
    """When to decide again."""
    owed: bool = False
    """Whether something had come already when somebody looked what is next: it is left to whoever fires."""


class Model:
    """A store with one schedule at a time."""

    def __init__(self) -> None:
        self.known: Known | None = None
        self.work: list[Work] = []
        """All runs there ever were, in the order of their making."""
        self.skipped: dict[int, str] = {}
        """The instants that became no run, and why."""
        self.all_paused = False
        self.all_resumed: int | None = None

    @property
    def schedule(self) -> Known:
        """The schedule, where there must be one."""
        assert self.known is not None
        return self.known

    # What people do

    def put(self, plan: Plan, now: int) -> None:
        """Make the schedule, or change what differs. What an old rule named is answered before it goes."""
        if self.known is None:
            self.known = Known(plan, since=now, decided=now)
            work, self.work = self.work, []  # what a removed schedule of this key left running is not looked at yet
            self.look_ahead(now)
            self.work = work
            return
        known, old = self.known, self.known.plan
        if plan == old:
            return
        if plan.timing != old.timing and not (plan.timing.anchored and old.timing.anchored):
            self.close(now)
            known.since, known.asked = now, None
        known.plan = plan
        if known.state == "finished":
            known.state, known.since = "active", now
        self.look_ahead(now)

    def pause(self, until: int | None, now: int) -> None:
        self.schedule.state, self.schedule.hold = "paused", Hold("paused", until)
        self.look_ahead(now)

    def resume(self, now: int) -> bool:
        """Go on with the future; what passed was held. Failures are forgotten."""
        known = self.schedule
        if known.state not in ("paused", "parked"):
            return False
        assert known.hold is not None
        known.state, known.hold, known.failures = "active", Hold(known.hold.reason, now), 0
        if self.all_paused:
            self.look_ahead(now)
        else:
            self.decide(now)
        return True

    def pause_all(self, paused: bool, now: int) -> None:
        self.all_paused = paused
        self.all_resumed = None if paused else now

    def trigger(self, dues: list[int], kind: str, now: int) -> int:
        """Make runs by hand, as the overlap policy lets them; returns how many."""
        made = self.let_in([Work(due, kind, now, NORMAL) for due in dues])
        for each in made:
            self.store(each, now)
        if made:
            self.look_ahead(now)
        return len(made)

    def remove(self) -> None:
        """Forget the schedule; what waits is cancelled, what runs goes on."""
        self.known = None
        for each in self.work:
            if each.state == "waiting":
                each.state = "cancelled"

    def cancel(self, number: int, now: int) -> None:
        work = self.work[number]
        if work.state == "running":
            work.cancelled = True
        else:
            self.end([(work, "cancelled", None)], now)

    def retry(self, number: int, now: int) -> None:
        """Let a run that has ended begin once more."""
        work = self.work[number]
        work.queued = self.going() >= self.schedule.plan.max_running
        work.state, work.at, work.lost, work.cancelled = "waiting", now, 0, False
        work.ready = not work.queued
        self.look_ahead(now)

    # What workers do

    def claim(self, now: int) -> list[int]:
        """Begin what may begin; returns the numbers of those runs."""
        waiting = [n for n, each in enumerate(self.work) if each.state == "waiting" and not each.queued]
        found = [number for number in waiting if self.work[number].ready or self.work[number].at <= now]
        for number in found:
            self.work[number].state, self.work[number].started = "running", now
        return found

    def settle(self, number: int, outcome: str, now: int, *, again: int, asked: int | None = None) -> None:
        """End an attempt; `again` says when another may begin, `asked` how much later its schedule is to run next."""
        work = self.work[number]
        if outcome != "retry":
            self.end([(work, outcome, None if asked is None else now + asked)], now)
        elif work.cancelled:
            self.end([(work, "cancelled", None)], now)
        else:
            work.state, work.at, work.ready = "waiting", again, False

    def crash(self, now: int) -> None:
        """Lose the leases of all that runs: each may begin again, three times."""
        ended: list[tuple[Work, str, int | None]] = []
        for each in self.work:
            if each.state == "running":
                each.lost += 1
                if each.cancelled:
                    ended.append((each, "cancelled", None))
                elif each.lost > 3:
                    ended.append((each, "failed", None))
                else:
                    each.state, each.ready = "waiting", True
        if ended:
            self.end(ended, now)

    def end(self, ended: list[tuple[Work, str, int | None]], now: int) -> None:
        """End runs: the schedule counts from them, and what waited for them may begin."""
        for work, outcome, asked in ended:
            begun = work.state == "running"
            work.state = "failed" if outcome == "unresolved" else outcome
            if self.known is None:
                continue
            known = self.known
            known.finished, known.asked = now, asked
            if begun:
                known.started = work.started
            if outcome == "succeeded":
                known.failures, known.succeeded = 0, now
            if work.state == "failed":
                known.failures += 1
                pauses = known.plan.pause_after is not None and known.failures >= known.plan.pause_after
                goes_on = known.state == "active"
                unresolved = outcome == "unresolved" and known.state in ("active", "finished")
                if unresolved or (goes_on and pauses):
                    known.state = "parked" if outcome == "unresolved" else "paused"
                    known.hold = Hold(known.state)
        if self.known is not None:
            self.open_gates(now)
            self.look_ahead(now)

    # Overlap

    def under_way(self) -> list[Work]:
        return [each for each in self.work if each.state in UNDER_WAY]

    def going(self) -> int:
        """How many of those under way do not wait for another."""
        return sum(not each.queued for each in self.under_way())

    def open_gates(self, now: int) -> None:
        for each in sorted(self.under_way(), key=lambda each: (-each.priority, each.due)):
            if each.queued and self.going() < self.schedule.plan.max_running:
                each.queued, each.at = False, max(each.at, now)

    def let_in(self, wanted: list[Work]) -> list[Work]:
        """Return those that the overlap policy lets in, from the first on."""
        plan, busy = self.schedule.plan, self.under_way()
        if busy and wanted and plan.overlap == "cancel_running":
            for each in busy:
                if each.state == "running":
                    each.cancelled = True
                else:
                    each.state = "cancelled"
            busy = self.under_way()
        room = max(0, plan.max_running - len(busy))
        queue = {"skip": 0, "allow": 0, "queue_one": 1 if len(busy) == 1 else 0}.get(plan.overlap, len(wanted))
        made = wanted if room else wanted[:queue]  # what comes together never shuts each other out
        for number, each in enumerate(made):
            each.queued = number >= room
        return made

    # What becomes of due instants

    def fire(self, now: int) -> None:
        """Answer the instants that have come."""
        if self.known is not None and not self.all_paused and self.known.wake is not None and self.known.wake <= now:
            self.decide(now)

    def decide(self, now: int) -> None:
        """Answer every instant up to now, and say what is next."""
        if not self.held(now):
            if self.schedule.plan.timing.anchored:
                self.fire_anchored(now)
            else:
                self.fire_fixed(now)
        self.lift(now)
        self.look_ahead(now)

    def close(self, now: int) -> None:
        """Answer what a rule that is about to go has named. What is held now is skipped, not fired."""
        known = self.schedule
        if not (self.all_paused or self.held(now)):
            self.decide(now)
            return
        reason = known.hold.reason if known.hold else "paused"
        if not known.plan.timing.anchored:
            for instant in [] if self.used_up else self.open(now):
                self.skip(instant, reason)
            return
        due = self.would_be()
        if not self.used_up and due is not None and due <= now and not self.past_the_end(due):
            self.skip(due, reason)
            known.through = now

    def skip(self, instant: int, reason: str) -> None:
        assert instant not in self.skipped, "it has an answer already"
        self.skipped[instant] = reason
        self.schedule.through = max(self.schedule.through, instant)

    def make(self, due: int, at: int, *, late: bool) -> Work:
        return Work(due, self.schedule.plan.timing.kind, at, LOWER if late else NORMAL)

    def store(self, work: Work, now: int) -> None:
        work.ready = not work.queued and work.at <= now
        self.work.append(work)

    def made(self, work: Work, now: int) -> None:
        """Store a run that the rule made."""
        known = self.schedule
        assert work.due not in self.skipped, "it has an answer already"
        self.store(work, now)
        known.due, known.runs, known.through = work.due, known.runs + 1, max(known.through, work.due)

    @property
    def used_up(self) -> bool:
        most = self.schedule.plan.max_runs
        return most is not None and self.schedule.runs >= most

    def past_the_end(self, instant: int) -> bool:
        end = self.schedule.plan.timing.end
        return end is not None and instant > end

    def asked(self) -> int | None:
        """Return the instant that the last run asked for, inside the rule's bounds."""
        known = self.schedule
        return None if known.asked is None else known.plan.timing.within(known.asked)

    # Holds

    def hold(self) -> Hold | None:
        """Return the hold that is, or that ended since the last decision: the schedule's own, or that of everything."""
        known = self.schedule
        if self.all_resumed is None or self.all_resumed <= known.decided:
            return known.hold
        if known.hold is not None and known.hold.open(self.all_resumed):
            return known.hold
        return Hold("paused", self.all_resumed)

    def held(self, now: int) -> bool:
        hold = self.hold()
        return hold is not None and hold.open(now)

    def lift(self, now: int) -> None:
        """End a hold whose end has come."""
        known = self.schedule
        if not self.held(now):
            known.hold, known.decided = None, now
            if known.state in ("paused", "parked"):
                known.state = "active"

    # Fixed series

    def open(self, now: int) -> list[int]:
        """Return the instants that have come and have no answer."""
        known = self.schedule
        after, until = max(known.since, known.through), now - known.plan.place
        found = set(known.plan.timing.named(after, until))
        asked = self.asked()
        if asked is not None and after < asked <= until:
            found.add(asked)
        return sorted(found)

    def backs_off(self, instant: int) -> bool:
        """Tell whether it is skipped because the last run asked for a later one, or because the schedule fails."""
        known = self.schedule
        asked = self.asked()
        if asked is not None and asked > max(known.since, known.through):
            return instant < asked
        if known.due is None or not known.failures:
            return False
        following = next(known.plan.timing.named(known.due, known.due + AHEAD), None)
        if following is None:
            return False
        interval = following - known.due
        longer = known.plan.lengthened(interval, known.failures)
        return longer > interval and instant < known.due + longer

    def sort_out(self, now: int) -> tuple[list[int], dict[int, str]]:
        """Tell the instants that are left to run from those that are not, and why."""
        plan, hold = self.schedule.plan, self.hold()
        left, out = [], {}
        for instant in [] if self.used_up else self.open(now):
            if hold is not None and hold.until is not None and instant + plan.place < hold.until:
                out[instant] = hold.reason
            elif self.backs_off(instant):
                out[instant] = "backing off"
            elif plan.excludes(instant):
                out[instant] = "excluded"
            else:
                left.append(instant)
        return left, out

    def fire_fixed(self, now: int) -> None:
        known, plan = self.schedule, self.schedule.plan
        left, out = self.sort_out(now)
        grace = MINUTE if plan.grace is None and plan.missed == "none" else plan.grace
        in_time = [t for t in left if grace is None or now - (t + plan.place) <= grace]
        chosen = in_time[-plan.max_missed :] if plan.missed == "all" else [t for t in left[-1:] if t in in_time]
        for instant in left:
            if instant not in chosen:
                out[instant] = "merged" if chosen and plan.missed == "latest" else "missed"
        wanted = [self.make(t, now, late=now - (t + plan.place) > MINUTE) for t in chosen]
        let_in = self.let_in(wanted)
        for each in wanted[len(let_in) :]:
            out[each.due] = "overlap"
        for each in let_in:
            if not self.used_up:
                self.made(each, now)
        for instant, reason in out.items():
            if not self.used_up or instant < known.through:  # once it is used up, none is due any more
                self.skip(instant, reason)

    # Anchored intervals

    def natural(self) -> int | None:
        """Return when it is due by itself: from its last run on, not before the rule's start."""
        known, timing = self.schedule, self.schedule.plan.timing
        if self.under_way():
            return None
        asked = self.asked()
        if asked is not None:
            return asked
        if known.finished is None:
            return max(known.since + known.plan.place, timing.start or 0)
        anchor = known.finished
        if timing.since == "success" and known.succeeded is not None:
            anchor = max(anchor, known.succeeded)
        if timing.since == "start" and known.started is not None and known.started >= (known.due or 0):
            anchor = known.started  # one that ended before it began has only its end
        return max(anchor + known.plan.lengthened(timing.period * SECOND, known.failures), timing.start or 0)

    def would_be(self) -> int | None:
        """Return when it is due where no hold and no exclusion moves it: after all that has its answer."""
        due = self.natural()
        return None if due is None else max(due, self.schedule.through + 1)

    def swallowed(self) -> tuple[str, int] | None:
        """Return the reason and the end of the hold that swallowed it, where one did."""
        due, hold = self.would_be(), self.hold()
        if due is None or self.past_the_end(due) or hold is None or hold.until is None or due >= hold.until:
            return None
        return hold.reason, hold.until

    def fire_anchored(self, now: int) -> None:
        known, plan = self.schedule, self.schedule.plan
        natural, due, swallowed = self.natural(), self.would_be(), self.swallowed()
        if self.used_up or natural is None or due is None:
            return
        if swallowed is not None:
            self.skip(due, swallowed[0])
            due = swallowed[1]
            known.through = due - 1
        free = plan.first_not_excluded(due)
        if free > now or self.past_the_end(free):
            return
        if free > due:
            self.skip(due, "excluded")
        at = now + spread_offset(KEY, min(plan.spread, now - natural))
        self.made(self.make(free, at, late=now - (free if free > due else natural) > MINUTE), now)

    # What is next

    def look_ahead(self, now: int) -> None:
        """Say what is next, and when to decide again. What has come already is left to whoever fires."""
        known = self.schedule
        known.owed = not self.held(now) and self.has_come(now)
        if known.owed:
            known.wake = now
            return
        held = self.held(now)
        self.lift(now)
        known.decided = now
        known.next = None if self.used_up else self.following(now)
        if held and known.hold is not None:  # else the hold of everything ended, by a clock that was set back since
            known.wake = known.hold.until
        else:
            known.wake = (
                None if known.next is None else known.next + (0 if known.plan.timing.anchored else known.plan.place)
            )
        if known.state in ("active", "finished"):
            under_way = known.plan.timing.anchored and self.under_way() and not self.used_up
            over = known.next is None and not (under_way and known.state == "active")
            known.state = "finished" if over else "active"

    def has_come(self, now: int) -> bool:
        """Tell whether something is to be answered."""
        if self.used_up:
            return False
        if not self.schedule.plan.timing.anchored:
            return bool(self.open(now))
        due = self.would_be()
        if due is None or self.past_the_end(due):
            return False
        free = self.schedule.plan.first_not_excluded(due)
        return self.swallowed() is not None or (free <= now and not self.past_the_end(free))

    def following(self, now: int) -> int | None:
        """Return the next due instant, as far as it is known."""
        known, plan, hold = self.schedule, self.schedule.plan, self.hold()
        if hold is not None and hold.until is None:
            return None
        until = 0 if hold is None or hold.until is None else hold.until
        if plan.timing.anchored:
            due = self.would_be()
            if due is None or self.past_the_end(due):
                return None
            free = plan.first_not_excluded(max(due, until))
            return None if self.past_the_end(free) else free
        after = max(known.since, known.through, now - plan.place)
        ahead = set(plan.timing.named(after, after + AHEAD))
        asked = self.asked()
        if asked is not None and asked > after:
            ahead.add(asked)
        for instant in sorted(ahead):
            if instant + plan.place >= until and not self.backs_off(instant) and not plan.excludes(instant):
                return instant
        return None
