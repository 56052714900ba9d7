"""Whatever Python can say about a schedule of a known task, `rota schedules add` and `change` can say too."""

import asyncio
import inspect
import sys
from collections.abc import Callable
from typing import Any

import pytest
import typer

import rota
from rota import cli
from rota.store.schedule_reads import ScheduleState

Run = Callable[..., tuple[int, str, str]]

EVERY = "Every('15m', since='success')"
OTHER_WORDS = {"call": ("args",), "rule": ("rule",)}
PARTS: dict[str, tuple[str, ...]] = {
    "on_failure": ("double_from", "cap", "pause_after", "alert_after"),
    "adaptive": ("adaptive", "busy", "quiet", "floor", "ceiling"),
    "retry": ("attempts", "retry_first", "retry_factor", "retry_cap", "retry_jitter"),
}
ALL = [
    *("--overlap", "allow", "--max-running", "3", "--missed", "all", "--max-missed", "7", "--grace", "2h"),
    *("--spread", "10m", "--jitter", "5s", "--exclude", "* * 25 12 *", "--exclude", "At('2027-01-01T00:00Z')"),
    *("--max-runs", "9", "--double-from", "2", "--cap", "3h", "--pause-after", "8", "--alert-after", "4"),
    *("--busy", "20", "--quiet", "2", "--floor", "5m", "--ceiling", "6h"),
    *("--queue", "slow", "--priority", "high", "--limits", "host:a,host:b", "--timeout", "30s"),
    *("--attempts", "4", "--retry-first", "2s", "--retry-factor", "3", "--retry-cap", "5m", "--retry-jitter", "0.5"),
    *("--tags", "a,b", "--description", "why"),
]
OPTIONS: dict[str, Any] = {
    "overlap": "allow",
    "max_running": 3,
    "missed": "all",
    "max_missed": 7,
    "grace": "2h",
    "spread": "10m",
    "jitter": "5s",
    "exclude": [rota.Cron("* * 25 12 *"), rota.At("2027-01-01T00:00Z")],
    "max_runs": 9,
    "on_failure": rota.OnFailure(double_from=2, cap="3h", pause_after=8, alert_after=4),
    "adaptive": rota.Adaptive(busy=20, quiet=2, floor="5m", ceiling="6h"),
    "queue": "slow",
    "priority": "high",
    "limits": ["host:a", "host:b"],
    "timeout": "30s",
    "retry": rota.Retry(attempts=4, first="2s", factor=3, cap="5m", jitter=0.5),
    "tags": ["a", "b"],
    "description": "why",
}


@pytest.fixture
def run(store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command of `rota schedules` on a store."""

    def command(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["rota", *words, "--store", store])
        with pytest.raises(SystemExit) as stopped:
            cli.main()
        out, err = capsys.readouterr()
        return int(stopped.value.code or 0), out, err

    assert command("migrate")[0] == 0
    return lambda *words: command("schedules", *words)


def kept(store: str, key: str) -> ScheduleState:
    async def get() -> ScheduleState:
        async with rota.Rota(store) as app:
            return await app.schedules.get(key)

    return asyncio.run(get())


def values(state: ScheduleState) -> tuple[Any, ...]:
    names = ("policies", "queue", "priority", "limits", "timeout", "retry", "tags", "description", "rule", "args")
    return tuple(getattr(state, name) for name in names)


def test_every_option_of_a_schedule_is_an_option_of_add_and_of_change() -> None:
    assert set(OPTIONS) == set(inspect.signature(rota.Schedule).parameters) - {"key", "call", "rule"}
    known: dict[str, tuple[str, ...]] = {**{name: (name,) for name in OPTIONS}, **PARTS, **OTHER_WORDS}
    group: Any = typer.main.get_command(cli.app)
    for name in ("add", "change"):
        has = {each.name for each in group.commands["schedules"].commands[name].params}
        assert {option for options in known.values() for option in options} - has == set()
    for value, prefix in ((rota.OnFailure, ""), (rota.Adaptive, ""), (rota.Retry, "retry_")):
        fields = set(inspect.signature(value).parameters)
        assert {field for field in fields if not {field, prefix + field} & set(sum(PARTS.values(), ()))} == set()


@pytest.mark.parametrize("how", ["add", "change"])
def test_what_the_options_say_is_what_python_says(run: Run, store: str, how: str) -> None:
    @rota.Rota("sqlite://").task(name="refresh")
    def refresh(feed_id: int) -> None: ...

    async def put() -> ScheduleState:
        async with rota.Rota(store) as app:
            rule = rota.Every("15m", since="success")
            return await app.schedules.put(rota.Schedule("python", refresh.call(1), rule, **OPTIONS))

    said = asyncio.run(put())
    if how == "add":
        assert run("add", "cli", "refresh", EVERY, "--args", '{"feed_id": 1}', *ALL)[0] == 0
    else:
        assert run("add", "cli", "other", "@daily")[0] == 0
        args = ("--task", "refresh", "--args", '{"feed_id": 1}', "--rule", EVERY)
        assert run("change", "cli", *args, *ALL)[:2] == (0, "cli is changed\n")
    assert values(kept(store, "cli")) == values(said)


def test_what_can_be_taken_away_is_taken_away_by_none(run: Run, store: str) -> None:
    run("add", "a", "refresh", EVERY, *ALL)
    words = ("--grace", "--timeout", "--exclude", "--max-runs", "--double-from", "--pause-after", "--alert-after")
    gone = [word for name in (*words, "--attempts") for word in (name, "none")]
    assert run("change", "a", *gone, "--not-adaptive")[0] == 0
    state = kept(store, "a")
    found = state.policies
    assert (found.grace, found.exclude, found.max_runs, found.adaptive) == (None, (), None, None)
    assert (state.timeout, state.retry) == (None, None)
    assert found.on_failure == rota.OnFailure(cap="3h")


def test_a_part_is_changed_and_the_other_parts_stay(run: Run, store: str) -> None:
    run("add", "a", "refresh", EVERY, *ALL)
    assert run("change", "a", "--cap", "1h", "--retry-first", "1s", "--quiet", "0")[0] == 0
    state = kept(store, "a")
    assert state.policies.on_failure == rota.OnFailure(double_from=2, cap="1h", pause_after=8, alert_after=4)
    assert state.policies.adaptive == rota.Adaptive(busy=20, quiet=0, floor="5m", ceiling="6h")
    assert state.retry == rota.Retry(attempts=4, first="1s", factor=3, cap="5m", jitter=0.5)


def test_a_part_is_changed_of_many_and_each_keeps_its_other_parts(run: Run, store: str) -> None:
    for key, after in (("f1", "5"), ("f2", "7")):
        run(
            "add", key, "refresh", EVERY, "--tags", "feeds", "--pause-after", after, "--args", f'{{"feed_id": {after}}}'
        )
    assert run("change", "--tag", "feeds", "--alert-after", "2")[1] == "2 schedules were changed\n"
    assert run("change", "--prefix", "f", "--task", "other", "--attempts", "3")[1] == "2 schedules were changed\n"
    for key, after in (("f1", 5), ("f2", 7)):
        state = kept(store, key)
        assert state.policies.on_failure == rota.OnFailure(pause_after=after, alert_after=2)
        assert (state.task, state.args, state.retry) == ("other", f'{{"feed_id":{after}}}', rota.Retry(3))
    assert run("change", "--tag", "feeds", "--alert-after", "2")[1] == "0 schedules were changed\n"


def test_what_is_shown_names_every_part(run: Run) -> None:
    run("add", "a", "refresh", EVERY, *ALL)
    shown = run("show", "a")[1]
    assert "attempts 4, first 2s, factor 3, cap 5m, jitter 0.5" in shown
    assert "busy 20, quiet 2, floor 5m, ceiling 6h" in shown
    assert "double_from 2, pause_after 8, alert_after 4, cap 3h" in shown


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--retry-first", "5s"), "are parts of a retry that is not there; say --attempts too"),
        (("--attempts", "many"), "--attempts: 'many' is not allowed; use none or a whole number"),
        (("--attempts", "0"), "attempts: 0 is not allowed"),
        (("--attempts", "2", "--retry-factor", "0.5"), "factor: 0.5 is not allowed"),
        (("--attempts", "2", "--retry-first", "2h"), "cap: "),
        (("--double-from", "x"), "--double-from: 'x' is not allowed"),
        (("--busy", "1", "--quiet", "2"), "quiet: 2.0 is more than busy"),
        (("--ceiling", "1s"), "ceiling: '1s' is below the floor"),
        (("--floor", "low"), "floor: 'low' is not a duration"),
    ],
)
@pytest.mark.parametrize("how", ["add", "change"])
def test_parts_that_do_not_fit_are_refused_in_one_line(
    run: Run, how: str, words: tuple[str, ...], problem: str
) -> None:
    run("add", "a", "refresh", EVERY)
    given = ("add", "b", "refresh", EVERY) if how == "add" else ("change", "a")
    code, out, err = run(*given, *words)
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert problem in err


async def test_from_python_a_part_of_what_each_has_is_changed_by_a_function(app: rota.Rota) -> None:
    @app.task
    def work() -> None: ...

    for key, every in (("a", "10m"), ("b", "20m")):
        await app.schedules.put(rota.Schedule(key, work.call(), rota.Every(every, since="success"), tags=["t"]))

    def slower(known: rota.ScheduleState) -> rota.Rule:
        assert isinstance(known.rule, rota.Every)
        return rota.Every(known.rule.interval * 2, since="success")

    assert await app.schedules.change(tag="t", rule=slower) == 2
    assert [str(each.rule) for each in await app.schedules.list()] == [
        "Every('20m', since='success')",
        "Every('40m', since='success')",
    ]
    with pytest.raises(rota.InvalidSchedule, match="rule: 'x' is not a rule"):
        await app.schedules.change(tag="t", rule=lambda _: "x")
