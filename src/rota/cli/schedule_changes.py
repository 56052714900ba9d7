"""`rota schedules add` and `rota schedules change`: what a schedule is, said by options."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, TypeVar

import typer

from rota.app import Rota
from rota.cli.loading import Where, is_server, load_app, on_app, on_store, place
from rota.cli.moments import given_moment
from rota.cli.output import lines
from rota.cli.rules import Zone, read_rule
from rota.cli.schedule_orders import By, Note, Prefix, Tag, Which, check_which, login
from rota.cli.schedule_parts import (
    NONE,
    AdaptiveText,
    AlertAfter,
    Attempts,
    Busy,
    Cap,
    Ceiling,
    DoubleFrom,
    Floor,
    PauseAfter,
    Quiet,
    RetryCap,
    RetryFactor,
    RetryFirst,
    RetryJitter,
    given_parts,
    number,
    number_or_none,
)
from rota.errors import InvalidArguments, UnreadableArguments
from rota.schedule import Schedule
from rota.tasks import OWN_PREFIX, PRIORITIES, Call, named_call

T = TypeVar("T")

App = Annotated[
    str | None,
    typer.Option("--app", metavar="MODULE:APP", help="The app whose task it is; then the arguments are checked."),
]
Args = Annotated[
    str | None,
    typer.Option("--args", metavar="JSON", help='The arguments by name, as in {"feed_id": 42}. See --app.'),
]
OverlapText = Annotated[
    str | None, typer.Option("--overlap", help="skip, queue_one, queue_all, cancel_running or allow.")
]
MaxRunning = Annotated[int | None, typer.Option("--max-running", help="How many at once with overlap allow.")]
MissedText = Annotated[str | None, typer.Option("--missed", help="After downtime: latest, all or none.")]
MaxMissed = Annotated[int | None, typer.Option("--max-missed", help="How many at most with missed all.")]
Grace = Annotated[str | None, typer.Option("--grace", metavar="T", help="How late it may still start; or none.")]
SpreadText = Annotated[str | None, typer.Option("--spread", metavar="T", help="The window its key has a place in.")]
Jitter = Annotated[str | None, typer.Option("--jitter", metavar="T", help="Up to how much later, at random.")]
Exclude = Annotated[
    list[str] | None, typer.Option("--exclude", metavar="RULE", help="What it leaves out; may be given again; or none.")
]
MaxRuns = Annotated[str | None, typer.Option("--max-runs", metavar="N", help="After how many it is finished; or none.")]
Queue = Annotated[str | None, typer.Option("--queue", "-q", help="The queue of its runs.")]
PriorityText = Annotated[str | None, typer.Option("--priority", help="low, normal, high or a number.")]
Limits = Annotated[str | None, typer.Option("--limits", metavar="KEYS", help="Keys of limits, with commas between.")]
Timeout = Annotated[str | None, typer.Option("--timeout", metavar="T", help="How long an attempt may take; or none.")]
Tags = Annotated[str | None, typer.Option("--tags", metavar="TAGS", help="Tags, with commas between.")]
Description = Annotated[str | None, typer.Option("--description", help="What it is for.")]


def add(
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key it gets.", show_default=False)],
    task: Annotated[str, typer.Argument(metavar="TASK", help="The task's name.", show_default=False)],
    rule: Annotated[
        str,
        typer.Argument(
            metavar="RULE", help="A cron expression, or a rule such as \"Every('15m')\".", show_default=False
        ),
    ],
    *,
    where: Where = None,
    args: Args = None,
    app: App = None,
    tz: Zone = None,
    overlap: OverlapText = None,
    max_running: MaxRunning = None,
    missed: MissedText = None,
    max_missed: MaxMissed = None,
    grace: Grace = None,
    spread: SpreadText = None,
    jitter: Jitter = None,
    exclude: Exclude = None,
    max_runs: MaxRuns = None,
    double_from: DoubleFrom = None,
    cap: Cap = None,
    pause_after: PauseAfter = None,
    alert_after: AlertAfter = None,
    adaptive: AdaptiveText = None,
    busy: Busy = None,
    quiet: Quiet = None,
    floor: Floor = None,
    ceiling: Ceiling = None,
    queue: Queue = None,
    priority: PriorityText = None,
    limits: Limits = None,
    timeout: Timeout = None,
    attempts: Attempts = None,
    retry_first: RetryFirst = None,
    retry_factor: RetryFactor = None,
    retry_cap: RetryCap = None,
    retry_jitter: RetryJitter = None,
    tags: Tags = None,
    description: Description = None,
    note: Note = None,
    by: By = None,
) -> None:
    """Make a schedule; one that exists is left as it is, with exit code 1.

    Without --app nobody checks that there is such a task and that it takes these arguments, unless it is one of Rota's
    own: a worker finds out, and parks the schedule. Nor are the task's own queue, priority and limits known then: say
    them, or they are the usual.
    """
    given = dict(locals())
    values = _values(given, tz) | {name: part(None) for name, part in given_parts(given).items()}
    timetable = read_rule(rule, tz)

    async def make(chosen: Rota) -> None:
        made = Schedule(key, _call(chosen, task, args or "{}", whole=app is not None), timetable, **values)
        await chosen.schedules.put(made, create=True, note=note, by=by or login())

    _on(app, where, make)
    lines(f"{key} is made: {timetable.words()}")


def change(
    key: Which = None,
    *,
    where: Where = None,
    tag: Tag = None,
    prefix: Prefix = None,
    rule: Annotated[str | None, typer.Option("--rule", help="Another rule.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="Another task.")] = None,
    args: Args = None,
    app: App = None,
    tz: Zone = None,
    overlap: OverlapText = None,
    max_running: MaxRunning = None,
    missed: MissedText = None,
    max_missed: MaxMissed = None,
    grace: Grace = None,
    spread: SpreadText = None,
    jitter: Jitter = None,
    exclude: Exclude = None,
    max_runs: MaxRuns = None,
    double_from: DoubleFrom = None,
    cap: Cap = None,
    pause_after: PauseAfter = None,
    alert_after: AlertAfter = None,
    adaptive: AdaptiveText = None,
    busy: Busy = None,
    quiet: Quiet = None,
    floor: Floor = None,
    ceiling: Ceiling = None,
    queue: Queue = None,
    priority: PriorityText = None,
    limits: Limits = None,
    timeout: Timeout = None,
    attempts: Attempts = None,
    retry_first: RetryFirst = None,
    retry_factor: RetryFactor = None,
    retry_cap: RetryCap = None,
    retry_jitter: RetryJitter = None,
    tags: Tags = None,
    description: Description = None,
    last_success: Annotated[
        str | None, typer.Option("--last-success", metavar="T", help="When the last success was, said by hand.")
    ] = None,
    version: Annotated[
        int | None, typer.Option("--version", help="Only where this is still its version; see show.")
    ] = None,
    note: Note = None,
    by: By = None,
) -> None:
    """Change what is named, and keep the rest, of one schedule or of many; it counts at once."""
    check_which(key, tag, prefix)
    given = dict(locals())
    values = _values(given, tz) | given_parts(given)
    if rule is not None:
        values["rule"] = read_rule(rule, tz)
    success = given_moment(last_success, "--last-success")
    if not values and task is None and args is None and success is None:
        raise typer.BadParameter("say what to change, such as --rule", param_hint="change")

    async def work(chosen: Rota) -> int:
        if task is not None or args is not None:
            values["call"] = lambda known: _call(
                chosen, task or known.task, known.args if args is None else args, whole=app is not None
            )
        return await chosen.schedules.change(
            key,
            tag=tag,
            prefix=prefix,
            note=note,
            by=by or login(),
            version=version,
            last_success=success,
            **values,
        )

    count = _on(app, where, work)
    if key is None:
        lines(f"{count} schedules were changed")
    else:
        lines(f"{key} is changed" if count else f"{key} was so already")


# Reading what was given


def _values(given: dict[str, Any], tz: str | None) -> dict[str, Any]:
    """Return what was given as `Schedule` takes it."""
    plain = ("overlap", "max_running", "missed", "max_missed", "spread", "jitter", "queue")
    values = {name: given[name] for name in (*plain, "description") if given[name] is not None}
    for name in ("grace", "timeout"):
        if given[name] is not None:
            values[name] = None if given[name] == NONE else given[name]
    if given["max_runs"] is not None:
        values["max_runs"] = number_or_none("max_runs", given["max_runs"])
    for name in ("limits", "tags"):
        if given[name] is not None:
            values[name] = [each.strip() for each in given[name].split(",") if each.strip()]
    if given["exclude"]:
        left_out = given["exclude"]
        values["exclude"] = [] if left_out == [NONE] else [_excluded(each, tz) for each in left_out]
    if given["priority"] is not None:
        text = given["priority"]
        values["priority"] = text if text in PRIORITIES else number("priority", text, "low, normal, high or ")
    return values


def _excluded(text: str, tz: str | None) -> Any:
    return read_rule(text, None if "(" in text else tz)


def _call(app: Rota, task: str, args: str, *, whole: bool) -> Call[Any]:
    """Return the call, checked where the code is at hand: that of the whole app, or of Rota's own tasks."""
    if not whole and not task.startswith(OWN_PREFIX):
        return named_call(task, args)
    found = app.tasks.get(task)
    checked = named_call(task, args)
    try:
        given, named = found.load(checked.args_json)
    except UnreadableArguments as error:
        raise InvalidArguments(task, None, args, error.problem, "does not fit") from None
    return found.call(*given, **named)


def _on(target: str | None, where: list[str] | None, work: Callable[[Rota], Awaitable[T]]) -> T:
    """Do this on a store or a server, or on the store of an app."""
    if target is None:
        return on_store(where, work)
    named = place(where) if where else None
    if is_server(named):
        raise typer.BadParameter("does not go with a server, which knows its own tasks", param_hint="--app")
    return on_app(load_app(target), named, work)
