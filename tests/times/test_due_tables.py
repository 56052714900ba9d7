"""What becomes of a due instant: every row of docs/reference/due.md, as a story of one day in UTC, 2 March 2026."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rota.times import (
    Adaptive,
    AnyOf,
    At,
    Calendar,
    Cron,
    Decision,
    Every,
    Hold,
    OnFailure,
    Past,
    Policies,
    Room,
    Rule,
    decide,
    jitter_offset,
    room,
    spread_offset,
)

SECOND = 1_000_000
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
MIDNIGHT = datetime(2026, 3, 2, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

HOURLY = Cron("0 * * * *")
KEY = "feed-7"
CHECKER = OnFailure(double_from=3, cap="24h", pause_after=10)

TIMES = ("since", "through", "due", "started", "finished", "succeeded", "asked")


def at(time: str) -> int:
    """A time of that day, `10:00` or `10:00:00.000001`; of another day with its date in front."""
    day, _, clock = time.rpartition(" ")
    moment = datetime.fromisoformat(f"{day or '2026-03-02'}T{clock}+00:00")
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // MICROSECOND


def shown(instant: int | None) -> str | None:
    """The shortest text that `at` reads back."""
    if instant is None:
        return None
    moment = datetime(1970, 1, 1, tzinfo=UTC) + instant * MICROSECOND
    clock = f"{moment:%H:%M}" if instant % MINUTE == 0 else f"{moment:%H:%M:%S}"
    clock += f".{moment:%f}" if instant % SECOND else ""
    return clock if moment.date() == MIDNIGHT.date() else f"{moment:%Y-%m-%d} {clock}"


def past(since: str = "00:30", *, hold: Hold | None = None, **known: Any) -> Past:
    """A past whose times are texts."""
    given: dict[str, Any] = {name: at(value) if name in TIMES else value for name, value in known.items()}
    return Past(since=at(since), hold=hold, **given)


def pause(until: str | None = None) -> Hold:
    return Hold("paused", None if until is None else at(until))


def ask(rule: Rule, known: Past, now: str, **policies: Any) -> Decision:
    return decide(KEY, rule, Policies(**policies), known, at(now))


def fired(decision: Decision) -> list[str | None]:
    return [shown(firing.due) for firing in decision.fire]


def skipped(decision: Decision) -> list[tuple[str, str | None, str | None, int]]:
    return [(skip.reason, shown(skip.first), shown(skip.last), skip.count) for skip in decision.skips]


def nothing(decision: Decision) -> bool:
    return not decision.fire and not decision.skips


# A fixed series: when something is due.


def test_a_schedule_that_never_ran_waits_for_its_next_match() -> None:
    decision = ask(HOURLY, past(since="09:30"), "09:30")
    assert nothing(decision)
    assert shown(decision.next) == shown(decision.wake) == "10:00"


def test_a_schedule_made_on_a_match_waits_for_the_one_after() -> None:
    assert shown(ask(HOURLY, past(since="10:00"), "10:00").next) == "11:00"


def test_an_instant_fires_when_it_comes_and_not_a_microsecond_before() -> None:
    assert nothing(ask(HOURLY, past(since="09:30"), "09:59:59.999999"))
    decision = ask(HOURLY, past(since="09:30"), "10:00")
    assert fired(decision) == ["10:00"]
    assert (shown(decision.through), shown(decision.next)) == ("10:00", "11:00")


def test_an_answered_instant_is_not_answered_again() -> None:
    decision = ask(HOURLY, past(since="09:30", through="10:00"), "10:59")
    assert nothing(decision)
    assert (shown(decision.through), shown(decision.next)) == ("10:00", "11:00")


def test_a_changed_rule_is_not_caught_up_from_before_its_change() -> None:
    decision = ask(HOURLY, past(since="12:30", through="08:00"), "13:00")
    assert (fired(decision), skipped(decision)) == (["13:00"], [])


def test_a_second_scheduler_with_old_knowledge_fires_the_same_due_and_no_other() -> None:
    old = past(since="09:30", through="10:00")
    first, second = ask(HOURLY, old, "12:00"), ask(HOURLY, old, "12:00:20")
    assert fired(first) == fired(second) == ["12:00"]  # so that one of the two is refused as a double
    assert skipped(first) == skipped(second)


def test_a_second_scheduler_that_knows_of_the_first_has_nothing_to_do() -> None:
    assert nothing(ask(HOURLY, past(since="09:30", through="12:00"), "12:00:20"))


def test_a_clock_set_back_makes_no_burst_and_names_no_answered_instant() -> None:
    decision = ask(HOURLY, past(since="01:30", through="12:00"), "08:00")
    assert nothing(decision)
    assert (shown(decision.through), shown(decision.next)) == ("12:00", "13:00")


def test_a_rule_that_has_ended_is_finished() -> None:
    ending = Cron("0 * * * *", end="2026-03-02T10:30Z")
    decision = ask(ending, past(), "10:00")
    assert (fired(decision)[-1:], decision.next, decision.finished) == (["10:00"], None, True)


def test_a_rule_with_an_instant_left_is_not_finished() -> None:
    ending = Cron("0 * * * *", end="2026-03-02T11:00Z")
    decision = ask(ending, past(), "10:00")
    assert (shown(decision.next), decision.finished) == ("11:00", False)


# A fixed series: max_runs.


def test_a_schedule_that_made_all_its_runs_is_finished_whatever_has_come() -> None:
    decision = ask(HOURLY, past(runs=3, through="02:00"), "10:00", max_runs=3)
    assert nothing(decision)
    assert (decision.finished, decision.next, shown(decision.through)) == (True, None, "02:00")


def test_the_last_run_that_it_may_make_finishes_a_schedule() -> None:
    decision = ask(HOURLY, past("09:30", runs=2), "10:00", max_runs=3)
    assert (fired(decision), decision.finished, decision.next) == (["10:00"], True, None)


def test_catching_up_stops_at_the_last_run_that_it_may_make() -> None:
    decision = ask(HOURLY, past("06:30", runs=1), "10:00", max_runs=3, missed="all")
    assert (fired(decision), decision.finished) == (["07:00", "08:00"], True)


def test_what_is_skipped_does_not_count_as_a_run() -> None:
    decision = ask(HOURLY, past("06:30", runs=1, under_way=1), "10:00", max_runs=2, missed="all")
    assert skipped(decision) == [("overlap", "07:00", "10:00", 4)]
    assert (decision.finished, shown(decision.next)) == (False, "11:00")


def test_the_others_are_still_skipped_when_one_may_queue_and_more_runs_are_left() -> None:
    known = past("06:30", runs=1, under_way=1)
    decision = ask(HOURLY, known, "10:00", max_runs=3, missed="all", overlap="queue_one")
    assert (fired(decision), skipped(decision)) == (["07:00"], [("overlap", "08:00", "10:00", 3)])


def test_nothing_after_the_last_run_is_answered() -> None:
    known, noon = past("08:30", runs=2), Cron("* 10 * * *")
    decision = ask(HOURLY, known, "10:00", max_runs=3, exclude=[noon])
    assert (fired(decision), skipped(decision), shown(decision.through)) == (["09:00"], [], "09:00")


# A fixed series: holds.


def test_while_paused_without_an_end_nothing_is_answered_and_nothing_is_next() -> None:
    decision = ask(HOURLY, past(through="02:00", hold=pause()), "10:00")
    assert nothing(decision)
    assert (decision.next, decision.wake, decision.finished, shown(decision.through)) == (None, None, False, "02:00")


def test_while_paused_until_a_moment_next_is_the_first_match_from_then_on() -> None:
    for until, following in (("12:00", "12:00"), ("12:00:00.000001", "13:00"), ("12:30", "13:00")):
        decision = ask(HOURLY, past(hold=pause(until)), "10:00")
        assert nothing(decision)
        assert shown(decision.next) == following


def test_while_paused_next_is_neither_excluded_nor_backed_off() -> None:
    known = past("08:30", due="09:00", through="09:00", ended="failed", failures=4, runs=4, hold=pause("10:30"))
    assert shown(ask(HOURLY, known, "10:00", on_failure=CHECKER).next) == "13:00"
    assert shown(ask(HOURLY, past(hold=pause("10:30")), "10:00", exclude=[Cron("* 11 * * *")]).next) == "12:00"


def test_a_pause_that_passed_is_recorded_and_not_caught_up() -> None:
    decision = ask(HOURLY, past(since="06:30", hold=pause("09:30")), "09:30")
    assert (fired(decision), skipped(decision)) == ([], [("paused", "07:00", "09:00", 3)])
    assert (shown(decision.through), shown(decision.next)) == ("09:00", "10:00")


def test_a_parking_that_passed_is_recorded_as_such() -> None:
    decision = ask(HOURLY, past(since="08:30", hold=Hold("parked", at("09:30"))), "09:30")
    assert skipped(decision) == [("parked", "09:00", "09:00", 1)]


def test_the_very_moment_when_a_pause_ends_fires() -> None:
    decision = ask(HOURLY, past(since="07:30", hold=pause("09:00")), "09:00")
    assert (fired(decision), skipped(decision)) == (["09:00"], [("paused", "08:00", "08:00", 1)])


def test_what_is_missed_after_a_pause_is_caught_up() -> None:
    decision = ask(HOURLY, past(since="06:30", hold=pause("07:30")), "09:10")
    assert fired(decision) == ["09:00"]
    assert skipped(decision) == [("paused", "07:00", "07:00", 1), ("merged", "08:00", "08:00", 1)]


def test_a_pause_that_swallowed_nothing_leaves_no_trace() -> None:
    decision = ask(HOURLY, past(through="09:00", hold=pause("09:30")), "09:40")
    assert nothing(decision)
    assert shown(decision.next) == "10:00"


def test_with_a_spread_a_pause_swallows_what_would_have_come_in_it() -> None:
    offset = spread_offset(KEY, HOUR)
    just_before, just_after = (Hold("paused", at("09:00") + offset + late) for late in (0, 1))
    now = shown(at("09:00") + offset + 1)
    assert now is not None
    assert fired(ask(HOURLY, past(since="08:30", hold=just_before), now, spread="1h")) == ["09:00"]
    assert fired(ask(HOURLY, past(since="08:30", hold=just_after), now, spread="1h")) == []


def test_a_pause_that_outlasts_the_rule_is_not_its_end_before_it_has_passed() -> None:
    ending = Cron("0 * * * *", end="2026-03-02T10:30Z")
    held = ask(ending, past(since="08:30", hold=pause("12:00")), "09:30")
    assert (held.finished, held.next, shown(held.wake)) == (False, None, "12:00")
    over = ask(ending, past(since="08:30", hold=pause("12:00")), "12:00")
    assert (skipped(over), over.finished) == ([("paused", "09:00", "10:00", 2)], True)


# A fixed series: what the last run asked for, and failures.


def test_a_run_that_asks_for_a_later_moment_is_left_alone_until_then() -> None:
    known = past(due="08:00", through="08:00", ended="succeeded", asked="10:20")
    waiting = ask(HOURLY, known, "09:00")
    assert (fired(waiting), skipped(waiting)) == ([], [("backing off", "09:00", "09:00", 1)])
    assert shown(waiting.next) == "10:20"
    come = ask(HOURLY, known, "10:20")
    assert (fired(come), skipped(come)) == (["10:20"], [("backing off", "09:00", "10:00", 2)])
    assert shown(come.next) == "11:00"


def test_a_run_that_asks_for_an_earlier_moment_gets_it_and_its_next_match_too() -> None:
    known = past(due="08:00", through="08:00", ended="succeeded", asked="08:10")
    decision = ask(HOURLY, known, "08:10")
    assert (fired(decision), shown(decision.next)) == (["08:10"], "09:00")


def test_an_asked_moment_that_is_a_match_comes_once() -> None:
    known = past(due="08:00", through="08:00", ended="succeeded", asked="10:00")
    decision = ask(HOURLY, known, "10:00", missed="all")
    assert (fired(decision), skipped(decision)) == (["10:00"], [("backing off", "09:00", "09:00", 1)])


@pytest.mark.parametrize(("asked", "moved"), [("07:10", "09:15"), ("09:20", "09:20"), ("20:00", "11:45")])
def test_an_asked_moment_stays_inside_the_rules_bounds(asked: str, moved: str) -> None:
    inside = Cron("0 * * * *", start="2026-03-02T09:15Z", end="2026-03-02T11:45Z")
    known = past(due="07:00", through="07:00", ended="succeeded", asked=asked)
    assert shown(ask(inside, known, "07:05").next) == moved


def test_an_asked_moment_that_was_answered_is_not_due_again() -> None:
    known = past(due="08:00", through="09:00", ended="succeeded", asked="08:30")
    decision = ask(HOURLY, known, "10:00")
    assert (fired(decision), skipped(decision)) == (["10:00"], [])


@pytest.mark.parametrize(
    ("failures", "following"), [(1, "09:00"), (2, "09:00"), (3, "10:00"), (4, "12:00"), (5, "16:00")]
)
def test_a_failing_cron_waits_twice_as_long_from_the_third_failure_on(failures: int, following: str) -> None:
    known = past(due="08:00", through="08:00", ended="failed", failures=failures, runs=9)
    assert shown(ask(HOURLY, known, "08:30", on_failure=CHECKER).next) == following


def test_what_passes_while_it_backs_off_is_recorded() -> None:
    known = past(due="08:00", through="08:00", ended="failed", failures=4, runs=9)
    decision = ask(HOURLY, known, "12:00", on_failure=CHECKER)
    assert (fired(decision), skipped(decision)) == (["12:00"], [("backing off", "09:00", "11:00", 3)])


def test_backing_off_ends_at_the_cap() -> None:
    known = past(due="08:00", through="08:00", ended="failed", failures=9, runs=9)
    assert shown(ask(HOURLY, known, "08:30", on_failure=OnFailure(double_from=3, cap="3h")).next) == "11:00"


def test_one_success_ends_the_backing_off_of_a_cron() -> None:
    known = past(due="08:00", through="08:00", ended="succeeded", failures=0, runs=9)
    assert shown(ask(HOURLY, known, "08:30", on_failure=CHECKER).next) == "09:00"


def test_a_moment_that_a_failing_run_asked_for_comes_before_the_backing_off() -> None:
    known = past(due="08:00", through="08:00", ended="failed", failures=5, runs=9, asked="08:10")
    decision = ask(HOURLY, known, "08:10", on_failure=CHECKER)
    assert fired(decision) == ["08:10"]


# A fixed series: exclusion.


def test_an_excluded_match_is_skipped_and_is_never_next() -> None:
    lunch = Cron("* 12-13 * * *")
    before, after = (
        ask(HOURLY, past("10:30"), "11:00", exclude=[lunch]),
        ask(HOURLY, past("11:30"), "13:30", exclude=[lunch]),
    )
    assert (fired(before), shown(before.next)) == (["11:00"], "14:00")
    assert (fired(after), skipped(after)) == ([], [("excluded", "12:00", "13:00", 2)])


def test_next_lies_beyond_an_exclusion_however_long_it_is() -> None:
    decision = ask(Cron("* * * * *"), past("08:30"), "09:00", exclude=[Cron("* * * 3 *")])
    assert shown(decision.next) == shown(decision.wake) == "2026-04-01 00:00"


@pytest.mark.parametrize("excluding", [Every("1m"), Cron("* * * * *"), AnyOf(Every("2m"), Cron("0 1-59/2 * * * *"))])
def test_a_rule_that_is_excluded_for_ever_fires_nothing_and_steps_through_no_century(excluding: Rule) -> None:
    decision = ask(Cron("* * * * *"), past("08:30"), "09:00", exclude=[excluding])
    assert (fired(decision), skipped(decision)) == ([], [("excluded", "08:31", "09:00", 30)])
    assert decision.next is None or decision.next > at("09:00")


def test_the_newest_that_is_not_excluded_fires() -> None:
    decision = ask(HOURLY, past("08:30"), "12:10", exclude=[Cron("* 12 * * *")])
    assert fired(decision) == ["11:00"]
    assert skipped(decision) == [("merged", "09:00", "10:00", 2), ("excluded", "12:00", "12:00", 1)]


def test_a_rule_of_which_all_that_is_left_is_excluded_is_finished() -> None:
    two = At(["2026-03-02T09:00Z", "2026-03-02T10:00Z"])
    decision = ask(two, past("08:30"), "09:00", exclude=[Cron("0 10 * * *")])
    assert (fired(decision), decision.next, decision.finished) == (["09:00"], None, True)


def test_a_day_is_excluded_by_all_of_its_minutes() -> None:
    christmas = Cron("* * 25 12 *", tz="Europe/Berlin")
    known, every_second = past("2026-12-24 22:59:58"), Cron("* * * * * *")
    decision = ask(every_second, known, "2026-12-25 23:00", exclude=[christmas])
    assert fired(decision) == ["2026-12-25 23:00"]
    assert skipped(decision) == [
        ("merged", "2026-12-24 22:59:59", "2026-12-24 22:59:59", 1),
        ("excluded", "2026-12-24 23:00", "2026-12-25 22:59:59", 86_400),
    ]


@pytest.mark.parametrize(
    ("excluding", "first_free"),
    [
        (Cron("1 9 * * *"), "09:02"),
        (Calendar("day", at="09:01"), "09:02"),
        (Cron("0 1 9 * * *"), "09:01:01"),
        (Calendar("day", at=["09:01:00", "09:01:01", "09:01:02"]), "09:01:03"),
        (Every("1m"), "09:01:01"),
        (At("2026-03-02T09:01:00Z"), "09:01:01"),
        (At("2026-03-02T09:01:00.000001Z"), "09:01"),
        (AnyOf(Cron("1 9 * * *"), At("2026-03-02T09:02:00Z")), "09:02:01"),
        (AnyOf(Cron("1 9 * * *"), start="2026-03-02T09:01:01Z"), "09:01"),
    ],
)
def test_a_rule_excludes_the_minute_the_second_or_the_moment_that_it_names(excluding: Rule, first_free: str) -> None:
    decision = ask(Cron("* * * * * *"), past("09:00:58"), "09:00:59", exclude=[excluding])
    assert shown(decision.next) == first_free


def test_an_excluded_minute_is_excluded_to_its_end_beyond_midnight() -> None:
    # until 1972 Monrovia's minutes began at half past ours
    decision = ask(
        Cron("* * * * * *"),
        past("1971-06-01 23:59:28"),
        "1971-06-02 00:00:31",
        exclude=[Cron("15 23 * * *", tz="Africa/Monrovia")],
    )
    assert skipped(decision)[-1] == ("excluded", "1971-06-01 23:59:30", "1971-06-02 00:00:29", 60)


def test_a_moment_between_two_seconds_lies_in_the_second_that_is_excluded() -> None:
    moments = At(["2026-03-02T09:00:00.5Z", "2026-03-02T09:00:01.5Z"])
    decision = ask(moments, past("08:00"), "09:01", exclude=[Cron("0 0 9 * * *")])
    assert (fired(decision), skipped(decision)) == (
        ["09:00:01.500000"],
        [("excluded", "09:00:00.500000", "09:00:00.500000", 1)],
    )


# A fixed series: what was missed.


def test_after_downtime_one_run_does_for_all_that_was_missed() -> None:
    decision = ask(HOURLY, past("05:30"), "10:20")
    assert (fired(decision), skipped(decision)) == (["10:00"], [("merged", "06:00", "09:00", 4)])


def test_within_its_grace_the_newest_still_fires() -> None:
    assert fired(ask(HOURLY, past("08:30"), "10:05", grace="5m")) == ["10:00"]
    decision = ask(HOURLY, past("08:30"), "10:05:00.000001", grace="5m")
    assert (fired(decision), skipped(decision)) == ([], [("missed", "09:00", "10:00", 2)])


def test_without_a_grace_nothing_is_too_late() -> None:
    assert fired(ask(Cron("0 9 1 1 *"), past("2025-12-31 00:00"), "12:00")) == ["2026-01-01 09:00"]


def test_all_that_was_missed_runs_in_order_up_to_max_missed() -> None:
    decision = ask(HOURLY, past("05:30"), "10:20", missed="all", max_missed=3)
    assert (fired(decision), skipped(decision)) == (["08:00", "09:00", "10:00"], [("missed", "06:00", "07:00", 2)])


def test_of_all_that_was_missed_only_what_is_within_its_grace_runs() -> None:
    decision = ask(HOURLY, past("05:30"), "10:20", missed="all", grace="80m")
    assert (fired(decision), skipped(decision)) == (["09:00", "10:00"], [("missed", "06:00", "08:00", 3)])


def test_what_catches_up_together_runs_one_after_the_other() -> None:
    decision = ask(HOURLY, past("07:30"), "10:20", missed="all")
    assert [firing.queued for firing in decision.fire] == [False, True, True]


def test_with_none_a_match_is_missed_after_a_minute() -> None:
    assert fired(ask(HOURLY, past("08:30"), "10:01", missed="none")) == ["10:00"]
    decision = ask(HOURLY, past("08:30"), "10:01:00.000001", missed="none")
    assert (fired(decision), skipped(decision)) == ([], [("missed", "09:00", "10:00", 2)])


def test_with_none_the_older_ones_are_missed_and_not_merged() -> None:
    assert skipped(ask(HOURLY, past("07:30"), "10:00", missed="none")) == [("missed", "08:00", "09:00", 2)]


def test_with_none_a_grace_says_how_late_is_too_late() -> None:
    assert fired(ask(HOURLY, past("09:30"), "10:05", missed="none", grace="5m")) == ["10:00"]
    assert fired(ask(HOURLY, past("09:30"), "10:00:31", missed="none", grace="30s")) == []


def test_a_day_that_loses_an_hour_has_one_match_less() -> None:
    by_the_wall = Cron("0 * * * *", tz="Europe/Berlin")
    decision = ask(by_the_wall, past("2026-03-28 23:00"), "2026-03-29 22:00")  # the 29th in Berlin
    assert decision.skips[0].count + len(decision.fire) == 23


def test_a_firing_more_than_a_minute_late_is_late() -> None:
    assert [firing.late for firing in ask(HOURLY, past("09:30"), "10:01").fire] == [False]
    assert [firing.late for firing in ask(HOURLY, past("09:30"), "10:01:00.000001").fire] == [True]


# A fixed series: overlap.

START, QUEUE, SKIP = "start", "queue", "skip"


@pytest.mark.parametrize(
    ("overlap", "under_way", "three"),
    [
        ("skip", 0, [START, QUEUE, QUEUE]),
        ("skip", 1, [SKIP, SKIP, SKIP]),
        ("queue_one", 0, [START, QUEUE, QUEUE]),
        ("queue_one", 1, [QUEUE, SKIP, SKIP]),
        ("queue_one", 2, [SKIP, SKIP, SKIP]),
        ("queue_all", 0, [START, QUEUE, QUEUE]),
        ("queue_all", 5, [QUEUE, QUEUE, QUEUE]),
        ("cancel_running", 0, [START, QUEUE, QUEUE]),
        ("cancel_running", 1, [QUEUE, QUEUE, QUEUE]),
        ("allow", 0, [START, START, QUEUE]),
        ("allow", 1, [START, QUEUE, QUEUE]),
        ("allow", 2, [SKIP, SKIP, SKIP]),
        ("allow", 3, [SKIP, SKIP, SKIP]),
    ],
)
def test_what_fires_meets_what_is_under_way(overlap: str, under_way: int, three: list[str]) -> None:
    most = {"max_running": 2} if overlap == "allow" else {}
    decision = ask(HOURLY, past("07:30", under_way=under_way), "10:00", missed="all", overlap=overlap, **most)
    goes = [QUEUE if firing.queued else START for firing in decision.fire]
    assert goes == [each for each in three if each != SKIP]
    assert sum(skip.count for skip in decision.skips) == three.count(SKIP)
    assert {skip.reason for skip in decision.skips} <= {"overlap"}
    assert decision.cancel == (overlap == "cancel_running" and under_way > 0)


def test_nothing_is_cancelled_while_nothing_fires() -> None:
    assert not ask(HOURLY, past("09:30", under_way=1), "09:40", overlap="cancel_running").cancel
    late = ask(HOURLY, past("09:30", under_way=1), "10:40", overlap="cancel_running", grace="5m")
    assert (skipped(late), late.cancel) == ([("missed", "10:00", "10:00", 1)], False)


def test_a_skipped_overlap_leaves_the_schedule_scheduled() -> None:
    decision = ask(HOURLY, past("09:30", under_way=1), "10:00")
    assert (skipped(decision), shown(decision.next)) == ([("overlap", "10:00", "10:00", 1)], "11:00")


@pytest.mark.parametrize(
    ("policies", "under_way", "wanted", "space"),
    [
        ({}, 0, 1, Room(1)),
        ({}, 1, 1, Room(0)),
        ({}, 0, 3, Room(1, 2)),
        ({"overlap": "queue_one"}, 1, 3, Room(0, 1)),
        ({"overlap": "queue_one"}, 2, 1, Room(0)),
        ({"overlap": "queue_all"}, 2, 3, Room(0, 3)),
        ({"overlap": "cancel_running"}, 2, 1, Room(0, 1, cancel=True)),
        ({"overlap": "cancel_running"}, 0, 1, Room(1)),
        ({"overlap": "allow", "max_running": 3}, 1, 1, Room(1)),
        ({"overlap": "allow", "max_running": 3}, 1, 5, Room(2, 3)),
        ({"overlap": "allow", "max_running": 3}, 3, 5, Room(0)),
    ],
)
def test_a_trigger_or_back_fill_meets_the_same_table(
    policies: dict[str, Any], under_way: int, wanted: int, space: Room
) -> None:
    assert room(Policies(**policies), under_way, wanted) == space


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "queue_all", "cancel_running", "allow"])
@pytest.mark.parametrize("under_way", [0, 1, 2])
def test_where_nothing_is_wanted_nothing_starts_queues_or_is_cancelled(overlap: Any, under_way: int) -> None:
    assert room(Policies(overlap=overlap), under_way, 0) == Room(0)


# A fixed series: spread and jitter.


def test_with_a_spread_an_instant_comes_later_and_keeps_its_name() -> None:
    offset = spread_offset(KEY, 10 * MINUTE)
    comes, before = shown(at("10:00") + offset), shown(at("10:00") + offset - 1)
    assert comes is not None
    assert before is not None
    assert 0 < offset < 10 * MINUTE
    waiting = ask(HOURLY, past("09:30"), before, spread="10m")
    assert (fired(waiting), shown(waiting.next), shown(waiting.wake)) == ([], "10:00", comes)
    come = ask(HOURLY, past("09:30"), comes, spread="10m")
    assert [(shown(firing.due), shown(firing.at), firing.late) for firing in come.fire] == [("10:00", comes, False)]


def test_a_grace_counts_from_where_the_spread_puts_an_instant() -> None:
    latest = at("10:00") + spread_offset(KEY, 10 * MINUTE) + 5 * MINUTE
    for late, dues in ((0, ["10:00"]), (1, [])):
        now = shown(latest + late)
        assert now is not None
        assert fired(ask(HOURLY, past("09:30"), now, spread="10m", grace="5m")) == dues


def test_with_jitter_a_run_is_made_when_it_is_due_and_starts_later() -> None:
    decision = ask(HOURLY, past("09:30"), "10:00", jitter="10m")
    expected = at("10:00") + jitter_offset(KEY, at("10:00"), 10 * MINUTE)
    assert [(shown(firing.due), firing.at) for firing in decision.fire] == [("10:00", expected)]
    assert at("10:00") < expected < at("10:10")


def test_jitter_does_not_hold_back_what_is_later_than_it_anyway() -> None:
    decision = ask(HOURLY, past("09:30"), "10:30", jitter="10m")
    assert [shown(firing.at) for firing in decision.fire] == ["10:30"]


# A fixed series: long times are counted, never stepped through.


def test_a_per_second_rule_paused_for_a_year_is_counted_not_stepped() -> None:
    known = past("2026-01-01 00:00", hold=pause("2027-01-01 00:00"))
    decision = ask(Cron("* * * * * *"), known, "2027-01-01 00:00")
    assert fired(decision) == ["2027-01-01 00:00"]
    assert skipped(decision) == [("paused", "2026-01-01 00:00:01", "2026-12-31 23:59:59", 31_535_999)]


def test_several_rules_missed_for_a_year_are_counted_once_each() -> None:
    mixed = AnyOf(Every("1s"), Cron("* * * * * *", tz="Europe/Berlin"), At("2026-05-05T05:05:05.5Z"))
    decision = ask(mixed, past("2026-01-01 00:00"), "2027-01-01 00:00")
    assert skipped(decision) == [("merged", "2026-01-01 00:00:01", "2026-12-31 23:59:59", 31_536_000)]


def test_a_year_of_seconds_less_its_sundays_is_exact() -> None:
    sundays = 52 * 86_400
    decision = ask(Cron("* * * * * *"), past("2026-01-01 00:00"), "2027-01-01 00:00", exclude=[Cron("* * * * * SUN")])
    assert skipped(decision) == [
        ("merged", "2026-01-01 00:00:01", "2026-12-31 23:59:59", 31_536_000 - sundays - 1),
        ("excluded", "2026-01-04 00:00", "2026-12-27 23:59:59", sundays),
    ]


def test_a_year_in_which_every_second_is_excluded_fires_nothing() -> None:
    every = AnyOf(Cron("0-29 * * * * *"), Cron("30-59 * * * * *"))
    decision = ask(Cron("* * * * * *"), past("2026-01-01 00:00"), "2027-01-01 00:00", exclude=[every], missed="all")
    assert (fired(decision), skipped(decision)) == (
        [],
        [("excluded", "2026-01-01 00:00:01", "2027-01-01 00:00", 31_536_000)],
    )


def test_catching_up_after_a_year_of_seconds_runs_the_newest_hundred() -> None:
    decision = ask(Cron("* * * * * *"), past("2026-01-01 00:00"), "2027-01-01 00:00", missed="all")
    assert (len(decision.fire), fired(decision)[0], fired(decision)[-1]) == (
        100,
        "2026-12-31 23:58:21",
        "2027-01-01 00:00",
    )
    assert [skip.count for skip in decision.skips] == [31_535_900]


# An anchored interval: its due instant.

FEED = Every("60m", since="success")


def success(finished: str, **known: Any) -> Past:
    """A past whose last run succeeded; it started ten minutes before, when it was due."""
    start = shown(at(finished) - 10 * MINUTE)
    given = {"due": start, "through": start, "started": start, "finished": finished, "succeeded": finished}
    return past(ended="succeeded", **{"runs": 1, **given, **known})


def failure(finished: str, failures: int, **known: Any) -> Past:
    """A past whose last run failed, with a success long ago."""
    start = shown(at(finished) - 10 * MINUTE)
    given = {"due": start, "through": start, "started": start, "finished": finished, "succeeded": "00:40"}
    return past(ended="failed", failures=failures, **{"runs": 9, **given, **known})


def test_a_feed_that_was_never_fetched_is_due_at_once() -> None:
    decision = ask(FEED, past("09:30"), "09:30")
    assert [(shown(firing.due), shown(firing.at)) for firing in decision.fire] == [("09:30", "09:30")]
    assert (decision.next, decision.wake) == (None, None)


def test_with_a_spread_the_first_run_has_a_place_of_its_own() -> None:
    place = at("09:30") + spread_offset(KEY, HOUR)
    waiting = ask(FEED, past("09:30"), "09:30", spread="1h")
    assert (waiting.fire, waiting.next, waiting.wake) == ((), place, place)


def test_after_two_hours_down_an_hourly_success_interval_is_due_now() -> None:
    decision = ask(FEED, success("08:00"), "10:00")
    assert [(shown(firing.due), shown(firing.at)) for firing in decision.fire] == [("09:00", "10:00")]


def test_thirty_minutes_after_success_it_is_due_in_thirty_minutes() -> None:
    decision = ask(FEED, success("08:00"), "08:30")
    assert nothing(decision)
    assert shown(decision.next) == shown(decision.wake) == "09:00"


@pytest.mark.parametrize(("since", "following"), [("success", "09:00"), ("finish", "09:00"), ("start", "08:50")])
def test_an_interval_counts_from_its_own_anchor(since: Any, following: str) -> None:
    assert shown(ask(Every("1h", since=since), success("08:00"), "08:10").next) == following


@pytest.mark.parametrize(("interval", "following"), [("45m", "08:45"), ("2h", "10:00"), ("7d", "2026-03-09 08:00")])
def test_a_changed_interval_counts_at_once_from_the_same_success(interval: str, following: str) -> None:
    assert shown(ask(Every(interval, since="success"), success("08:00"), "08:30").next) == following


def test_an_interval_changed_to_a_shorter_one_may_be_overdue() -> None:
    assert fired(ask(Every("15m", since="success"), success("08:00"), "08:30")) == ["08:15"]


def test_a_last_success_set_by_hand_counts_at_once() -> None:
    assert shown(ask(FEED, success("08:00", succeeded="08:20"), "08:30").next) == "09:20"
    assert shown(ask(FEED, past("08:25", succeeded="08:20"), "08:30").next) == "09:20"


def test_while_a_run_is_under_way_there_is_no_next() -> None:
    decision = ask(FEED, success("08:00", under_way=1), "12:00")
    assert nothing(decision)
    assert (decision.next, decision.wake, decision.finished) == (None, None, False)


@pytest.mark.parametrize(
    ("failures", "following"),
    [(1, "08:15"), (2, "08:15"), (3, "08:30"), (4, "09:00"), (5, "10:00"), (9, "2026-03-03 08:00")],
)
def test_a_failure_counts_from_the_failed_attempt_and_doubles_from_the_third(failures: int, following: str) -> None:
    quarterly = Every("15m", since="success")
    assert shown(ask(quarterly, failure("08:00", failures), "08:00", on_failure=CHECKER).next) == following


def test_a_failure_is_never_due_again_at_once() -> None:
    assert nothing(ask(FEED, failure("08:00", 1), "08:00"))


def test_an_own_interval_over_the_cap_stays_when_it_fails() -> None:
    slow = Every("3d", since="success")
    assert shown(ask(slow, failure("08:00", 7), "08:00", on_failure=CHECKER).next) == "2026-03-05 08:00"


def test_one_success_restores_the_users_interval() -> None:
    assert shown(ask(FEED, failure("08:00", 6), "08:00", on_failure=CHECKER).next) == "2026-03-03 00:00"
    assert shown(ask(FEED, success("08:00"), "08:00", on_failure=CHECKER).next) == "09:00"


def test_a_failure_of_an_interval_between_starts_counts_from_the_start() -> None:
    assert shown(ask(Every("1h", since="start"), failure("08:00", 1), "08:00").next) == "08:50"


@pytest.mark.parametrize("since", ["success", "finish"])
def test_a_cancelled_run_counts_from_its_end(since: Any) -> None:
    known = past(due="07:50", through="07:50", started="07:50", finished="08:00", succeeded="00:40", ended="cancelled")
    assert shown(ask(Every("1h", since=since), known, "08:00").next) == "09:00"


@pytest.mark.parametrize("asked", ["08:10", "12:00"])
def test_a_run_may_ask_when_it_is_run_next(asked: str) -> None:
    assert shown(ask(FEED, success("08:00", asked=asked), "08:00").next) == asked
    assert shown(ask(FEED, failure("08:00", 6, asked=asked), "08:00", on_failure=CHECKER).next) == asked


@pytest.mark.parametrize(("asked", "moved"), [("08:10", "09:15"), ("10:00", "10:00"), ("20:00", "11:45")])
def test_what_a_run_asks_for_stays_inside_the_rules_bounds(asked: str, moved: str) -> None:
    inside = Every("1h", since="success", start="2026-03-02T09:15Z", end="2026-03-02T11:45Z")
    assert shown(ask(inside, success("08:00", asked=asked), "08:00").next) == moved


@pytest.mark.parametrize(
    ("average", "failures", "following"),
    [
        (None, 0, "09:00"),
        (5.0, 0, "09:00"),
        (11.0, 0, "08:30"),
        (0.0, 0, "10:00"),
        (11.0, 3, "09:00"),
        (11.0, 4, "10:00"),
    ],
)
def test_the_interval_adapts_first_and_then_fails(average: float | None, failures: int, following: str) -> None:
    known = failure("08:00", failures, average=average) if failures else success("08:00", average=average)
    assert shown(ask(FEED, known, "08:00", adaptive=Adaptive(), on_failure=CHECKER).next) == following


def test_it_is_not_due_before_the_rules_start() -> None:
    later = Every("1h", since="success", start="2026-03-02T12:00Z")
    assert shown(ask(later, past("09:30"), "09:30").next) == "12:00"
    assert shown(ask(later, success("08:00"), "09:30").next) == "12:00"


def test_past_the_rules_end_it_is_finished() -> None:
    ending = Every("1h", since="success", end="2026-03-02T09:00Z")
    on_the_end, past_the_end = ask(ending, success("08:00"), "08:30"), ask(ending, success("08:01"), "08:30")
    assert (shown(on_the_end.next), on_the_end.finished) == ("09:00", False)
    assert (past_the_end.next, past_the_end.finished) == (None, True)


def test_work_that_was_due_before_the_end_is_still_done_after_it() -> None:
    ending = Every("1h", since="success", end="2026-03-02T09:00Z")
    assert fired(ask(ending, success("08:00"), "12:00")) == ["09:00"]


def test_it_is_due_at_least_a_microsecond_after_what_was_answered() -> None:
    known = success("08:00", through="10:30")
    assert shown(ask(FEED, known, "09:00").next) == "10:30:00.000001"
    assert fired(ask(FEED, known, "12:00")) == ["10:30:00.000001"]


def test_an_anchored_schedule_that_made_all_its_runs_is_finished() -> None:
    made, last = (
        ask(FEED, success("08:00", runs=3), "10:00", max_runs=3),
        ask(FEED, success("08:00", runs=2), "10:00", max_runs=3),
    )
    assert (fired(made), made.finished, made.next) == ([], True, None)
    assert (fired(last), last.finished) == (["09:00"], True)


# An anchored interval: holds and exclusion.


def test_while_paused_an_interval_has_no_next_or_waits_for_the_end() -> None:
    open_ended, until = (
        ask(FEED, success("08:00", hold=pause()), "10:00"),
        ask(FEED, success("08:00", hold=pause("12:00")), "10:00"),
    )
    assert (nothing(open_ended), open_ended.next, open_ended.finished) == (True, None, False)
    assert (nothing(until), shown(until.next)) == (True, "12:00")


def test_a_pause_that_swallowed_the_due_instant_is_recorded_and_it_is_due_when_the_pause_ends() -> None:
    decision = ask(FEED, success("08:00", hold=pause("12:00")), "12:00")
    assert (fired(decision), skipped(decision)) == (["12:00"], [("paused", "09:00", "09:00", 1)])


def test_a_parking_is_recorded_as_such() -> None:
    decision = ask(FEED, success("08:00", hold=Hold("parked", at("12:00"))), "12:05")
    assert (fired(decision), skipped(decision)) == (["12:00"], [("parked", "09:00", "09:00", 1)])


def test_a_pause_that_ended_before_the_due_instant_leaves_no_trace() -> None:
    decision = ask(FEED, success("08:00", hold=pause("08:30")), "09:10")
    assert (fired(decision), skipped(decision)) == (["09:00"], [])


def test_a_pause_past_the_rules_end_is_recorded_before_the_rule_is_finished() -> None:
    ending = Every("1h", since="success", end="2026-03-02T10:00Z")
    held = ask(ending, success("08:00", hold=pause("12:00")), "08:30")
    assert (held.finished, held.next, shown(held.wake)) == (False, None, "12:00")
    over = ask(ending, success("08:00", hold=pause("12:00")), "12:00")
    assert (fired(over), skipped(over), over.finished) == ([], [("paused", "09:00", "09:00", 1)], True)


def test_a_pause_that_was_dealt_with_has_no_second_effect() -> None:
    morning, hold = Cron("* 12 * * *"), pause("12:00")
    first = ask(FEED, success("08:00", hold=hold), "12:10", exclude=[morning])
    assert (fired(first), skipped(first)) == ([], [("paused", "09:00", "09:00", 1)])
    again = ask(FEED, success("08:00", through=shown(first.through)), "12:20", exclude=[morning])
    assert nothing(again)
    assert shown(again.next) == shown(first.next) == "13:00"


def test_a_rule_that_ended_inside_a_pause_stays_finished() -> None:
    ending = Every("1h", since="success", end="2026-03-02T10:00Z")
    first = ask(ending, success("08:00", hold=pause("12:00")), "12:00")
    again = ask(ending, success("08:00", through=shown(first.through)), "12:00")
    assert (nothing(again), again.finished) == (True, True)


def test_resumed_work_is_spread_as_overdue_work_is() -> None:
    decision = ask(FEED, success("08:00", hold=pause("12:00")), "12:00", spread="60s")
    assert [firing.at for firing in decision.fire] == [at("12:00") + spread_offset(KEY, MINUTE)]


def test_an_excluded_interval_is_due_when_the_exclusion_ends() -> None:
    morning = Cron("* 9-11 * * *")
    waiting = ask(FEED, success("08:00"), "10:30", exclude=[morning])
    assert (nothing(waiting), shown(waiting.next)) == (True, "12:00")
    come = ask(FEED, success("08:00"), "12:00", exclude=[morning])
    assert (fired(come), skipped(come)) == (["12:00"], [("excluded", "09:00", "09:00", 1)])


def test_an_interval_that_would_always_land_in_an_exclusion_still_runs() -> None:
    daily, nights = Every("24h", since="success"), Cron("* 2-3 * * *")
    assert shown(ask(daily, success("02:30"), "02:31", exclude=[nights]).next) == "2026-03-03 04:00"


def test_an_interval_that_waited_for_an_exclusion_to_pass_is_on_time_and_spread() -> None:
    decision = ask(FEED, success("08:00"), "12:00", exclude=[Cron("* 9-11 * * *")], spread="60s")
    assert [(each.at, each.late) for each in decision.fire] == [(at("12:00") + spread_offset(KEY, MINUTE), False)]


def test_an_interval_is_moved_over_excluded_moments_and_no_others() -> None:
    secondly, moments = Every("1s", since="success"), At(["2026-03-02T08:00:01.5Z", "2026-03-02T08:00:02Z"])
    assert shown(ask(secondly, success("08:00:00.5"), "08:00:01", exclude=[moments]).next) == "08:00:01.500001"


def test_a_short_interval_never_runs_inside_a_long_exclusion() -> None:
    minutely, march = Every("1m", since="success"), Cron("* * * 3 *")
    for now in ("2026-03-02 08:01", "2026-03-03 12:00", "2026-03-31 23:59"):
        decision = ask(minutely, success("08:00"), now, exclude=[march])
        assert fired(decision) == []
        assert decision.next is None or decision.next > at(now)
    assert fired(ask(minutely, success("08:00"), "2026-04-01 00:00", exclude=[march])) == ["2026-04-01 00:00"]


# An anchored interval: when it has come.


def test_without_a_spread_overdue_work_starts_at_once() -> None:
    assert [shown(firing.at) for firing in ask(FEED, success("08:00"), "15:00").fire] == ["15:00"]


def test_overdue_work_starts_at_its_place_in_the_spread() -> None:
    decision = ask(FEED, success("08:00"), "10:00", spread="60s")
    assert [firing.at for firing in decision.fire] == [at("10:00") + spread_offset(KEY, MINUTE)]


def test_work_is_never_held_back_for_longer_than_it_is_late() -> None:
    on_time, ten_seconds = (ask(FEED, success("08:00"), now, spread="60s") for now in ("09:00", "09:00:10"))
    assert [shown(firing.at) for firing in on_time.fire] == ["09:00"]
    assert [firing.at for firing in ten_seconds.fire] == [at("09:00:10") + spread_offset(KEY, 10 * SECOND)]


def test_a_restart_after_an_outage_is_no_thundering_herd() -> None:
    starts = [
        decide(f"feed-{number}", FEED, Policies(spread="60s"), success("08:00"), at("10:00")).fire[0].at
        for number in range(600)
    ]
    in_each_second = [sum((start - at("10:00")) // SECOND == second for start in starts) for second in range(60)]
    assert sum(in_each_second) == 600
    assert max(in_each_second) < 30


def test_an_interval_more_than_a_minute_overdue_is_late() -> None:
    assert [firing.late for firing in ask(FEED, success("08:00"), "09:01").fire] == [False]
    assert [firing.late for firing in ask(FEED, success("08:00"), "09:01:00.000001").fire] == [True]


@pytest.mark.parametrize(
    "policies",
    [{"overlap": "queue_all"}, {"overlap": "cancel_running"}, {"missed": "none"}, {"missed": "all"}, {"grace": 0}],
)
def test_overlap_missed_and_grace_do_not_concern_an_interval(policies: dict[str, Any]) -> None:
    for now in ("08:30", "09:00", "15:00"):
        assert ask(FEED, success("08:00"), now, **policies) == ask(FEED, success("08:00"), now)


def test_with_jitter_an_interval_starts_up_to_the_jitter_later_and_never_earlier() -> None:
    delays = set()
    for minute in range(10, 40):
        decision = ask(FEED, success(f"08:{minute}"), f"09:{minute}", jitter="10m")
        start = decision.fire[0].at if decision.fire else decision.next
        assert start is not None
        delays.add(start - at(f"09:{minute}"))
    assert all(0 <= delay < 10 * MINUTE for delay in delays)
    assert len(delays) == 30
