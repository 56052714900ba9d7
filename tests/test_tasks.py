"""Tasks: a function keeps working as it is, and what is called later is checked now."""

import asyncio
import functools
import importlib.util
import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError, dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Annotated, Any, Never, Unpack

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field
from typing_extensions import TypedDict

import rota
from rota.tasks import Registry, TaskDecorator, TaskOptions, default_name, priority_number


class App(TaskDecorator):
    def __init__(self) -> None:
        self.tasks = Registry()


app = App()


@app.task
async def refresh(feed_id: int, *, force: bool = False) -> int:
    """Fetch what is new."""
    return feed_id if force else 0


@app.task(name="reports:weekly", queue="slow", priority="high", timeout="30s")
def report(day: date, to: list[str] | None = None) -> str:
    return f"{day} {to}"


def task(function: Callable[..., Any]) -> rota.Task[..., Any]:
    """Make a task that is no one else's."""
    return App().task(function)


def runs(later: rota.Task[..., Any], args_json: str) -> Any:
    """Do what a worker does."""
    args, kwargs = later.load(args_json)
    return later.function(*args, **kwargs)


# Calling now.


def test_a_task_called_like_a_function_is_the_function() -> None:
    assert report(date(2027, 1, 1), to=["a"]) == "2027-01-01 ['a']"
    assert asyncio.run(refresh(7, force=True)) == 7
    assert report("whatever") == "whatever None"  # type: ignore[arg-type]  # Python's own rules, as ever


def test_a_task_looks_like_its_function() -> None:
    assert refresh.__name__ == "refresh"
    assert refresh.__doc__ == "Fetch what is new."
    assert str(inspect.signature(refresh)) == "(feed_id: int, *, force: bool = False) -> int"
    assert repr(refresh) == f"<Task {refresh.name}>"


def test_where_a_task_runs_follows_from_its_function() -> None:
    assert refresh.isolation == "async"
    assert report.isolation == "thread"
    assert App().task(isolation="process")(lambda_free).isolation == "process"


def lambda_free() -> None: ...


# Calls.


def test_a_call_holds_the_task_its_options_and_the_arguments_as_json() -> None:
    call = report.call(date(2027, 1, 1), to=["a", "b"])
    assert call.task is report
    assert call.name == "reports:weekly"
    assert call.options is report.options
    assert call.args_json == '{"day":"2027-01-01","to":["a","b"]}'


def test_calls_are_equal_where_task_and_arguments_are_however_they_are_passed() -> None:
    def pair(left: int, right: int = 2) -> None: ...

    later = task(pair)
    assert later.call(1, 2) == later.call(1, right=2) == later.call(right=2, left=1)
    assert len({later.call(1, 2), later.call(left=1, right=2), later.call(1)}) == 2
    assert later.call(1) != later.call(1, 2)
    assert refresh.call(1) != report.call(date(2027, 1, 1))
    assert task(pair).call(1) == task(pair).call(1)
    assert task(pair).call(1) != App().task(name="another")(pair).call(1)


def test_a_call_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        refresh.call(1).args_json = "{}"  # type: ignore[misc]


def test_a_call_does_not_change_when_what_was_passed_does() -> None:
    to = ["a"]
    call = report.call(date(2027, 1, 1), to)
    to.append("b")
    assert runs(report, call.args_json) == "2027-01-01 ['a']"


def test_without_arguments_there_is_nothing_to_write() -> None:
    assert task(lambda_free).call().args_json == "{}"
    assert task(lambda_free).load("{}") == ((), {})


# Whatever Python takes, a call takes, and the run gets the same.


def plain(a: int, b: int = 2) -> object:
    return locals()


def by_place(a: int, b: int = 2, /, c: int = 3) -> object:
    return locals()


def by_name(*, a: int, b: int = 2) -> object:
    return locals()


def rest(a: int, b: int = 2, *c: int) -> object:
    return locals()


def extra(a: int, **b: int) -> object:
    return locals()


def same_name(a: int, /, **b: int) -> object:
    return locals()


def everything(a: int, /, b: int, c: int = 3, *d: int, e: int, f: int = 6, **g: int) -> object:
    return locals()


def names_of_ours(self: int, args: int = 1, kwargs: int = 2, task: int = 3, **name: int) -> object:
    return locals()


def nothing() -> object:
    return locals()


SHAPES = [plain, by_place, by_name, rest, extra, same_name, everything, names_of_ours, nothing]
NAMES = st.sampled_from([*"abcdefgh", "self", "args", "kwargs", "task", "name", "*", "**", "ü", ""])


@given(
    st.sampled_from(SHAPES),
    st.lists(st.integers(0, 9), max_size=5),
    st.dictionaries(NAMES, st.integers(0, 9), max_size=5),
)
@settings(max_examples=1000)
def test_what_python_takes_is_taken_and_arrives_and_what_it_refuses_is_refused(
    function: Callable[..., object], args: list[int], kwargs: dict[str, int]
) -> None:
    try:
        wanted = function(*args, **kwargs)
    except TypeError:
        with pytest.raises(rota.InvalidArguments):
            task(function).call(*args, **kwargs)
    else:
        later = task(function)
        assert runs(later, later.call(*args, **kwargs).args_json) == wanted


@pytest.mark.parametrize(
    ("function", "args", "kwargs", "text"),
    [
        (everything, (1, 2), {"e": 5}, '{"a":1,"b":2,"e":5}'),
        (everything, (1, 2, 3, 4, 5), {"e": 5, "h": 8}, '{"a":1,"b":2,"c":3,"e":5,"*":[4,5],"**":{"h":8}}'),
        (same_name, (1,), {"a": 2}, '{"a":1,"**":{"a":2}}'),
    ],
)
def test_how_arguments_are_written(
    function: Callable[..., object], args: tuple[int, ...], kwargs: dict[str, int], text: str
) -> None:
    assert task(function).call(*args, **kwargs).args_json == text


def test_a_value_may_be_as_large_and_as_deep_wherever_it_is_passed() -> None:
    def take(first: Any, *others: Any, **named: Any) -> object:
        return first, others, named

    deepest: list[Any] = []
    for _ in range(63):
        deepest = [deepest]
    later = task(take)
    assert runs(later, later.call(deepest, deepest, name=deepest).args_json) == (deepest, (deepest,), {"name": deepest})
    for wrong in (lambda: later.call([deepest]), lambda: later.call(1, [deepest]), lambda: later.call(1, a=[deepest])):
        with pytest.raises(rota.InvalidArguments, match="too deep"):
            wrong()
    most = "x" * (1_000_000 - len('{"first":""}'))
    assert runs(later, later.call(most).args_json) == (most, (), {})


def test_attributes_of_the_function_do_not_hide_those_of_the_task() -> None:
    def work() -> None: ...

    work.call = work.name = None
    assert task(work).call().name.endswith(".work")


# What is refused when it is passed.


@pytest.mark.parametrize(
    ("make", "parameter", "message"),
    [
        (lambda: refresh.call("x"), "feed_id", "(feed_id): 'x' does not fit int; input should be a valid integer"),
        (lambda: refresh.call(feed_id=True), "feed_id", "(feed_id): True does not fit int; "),
        (lambda: refresh.call(feed_id=1.0), "feed_id", "(feed_id): 1.0 does not fit int; "),
        (refresh.call, "feed_id", "(feed_id): nothing was given; it takes feed_id: int, force: bool = …"),
        (
            lambda: refresh.call(1, True),
            None,
            ": True is one argument too many; it takes feed_id: int, force: bool = …",
        ),
        (lambda: refresh.call(1, feed_id=2), "feed_id", "(feed_id): 2 is given a second time; it takes "),
        (lambda: refresh.call(1, fast=2), "fast", "(fast): 2 is not expected; it takes feed_id: int, force: bool = …"),
        (lambda: report.call("2027-01-01"), "day", "(day): '2027-01-01' does not fit date; "),
        (
            lambda: report.call(date(2027, 1, 1), ["a", 1]),
            "to",
            "(to): ['a', 1] does not fit list[str] | None; at 1: input should be a valid string",
        ),
        (lambda: task(rest).call(1, 2, 3, "x"), "*c", "(*c): 'x' does not fit int; "),
        (lambda: task(extra).call(1, x="x"), "**b", "(**b): 'x' does not fit int; "),
        (lambda: task(nothing).call(1), None, ": 1 is one argument too many; it takes no arguments"),
        (lambda: task(bare).call(datetime(2027, 1, 1, tzinfo=UTC)), "anything", "annotate it as datetime, or pass str"),
        (lambda: task(bare).call("\ud800"), "anything", "holds half of a surrogate pair"),
        (lambda: task(bare).call(2**63), "anything", "is out of range"),
        (lambda: task(bare).call("x" * 1_000_000), None, "are too many; use at most 1,000,000"),
        (lambda: task(extra).call(1, **{"\ud800": 1}), None, "cannot be written as JSON"),
        (lambda: task(bounded).call(-1), "count", "(count): -1 does not fit "),
    ],
)
def test_arguments_that_do_not_fit_are_refused_by_name(
    make: Callable[[], object], parameter: str | None, message: str
) -> None:
    with pytest.raises(rota.InvalidArguments) as refused:
        make()
    assert message in str(refused.value)
    assert refused.value.parameter == parameter
    assert str(refused.value).startswith(refused.value.task)


def bare(anything):  # type: ignore[no-untyped-def]
    return anything


def bounded(count: Annotated[int, Field(ge=0)]) -> int:
    return count


# What was stored before the function changed.


def test_defaults_are_those_of_the_day_when_the_run_executes() -> None:
    def before(a: int, b: int = 2) -> object:
        return a, b

    def after(a: int, b: int = 3) -> object:
        return a, b

    assert runs(task(after), task(before).call(1).args_json) == (1, 3)
    assert runs(task(after), task(before).call(1, 2).args_json) == (1, 2)


@pytest.mark.parametrize(
    ("text", "after", "result"),
    [
        ('{"a":1}', plain, {"a": 1, "b": 2}),
        ('{"b":5,"a":1}', plain, {"a": 1, "b": 5}),
        ('{"a":1,"c":9}', by_place, {"a": 1, "b": 2, "c": 9}),
        ('{"a":1,"*":[8,9]}', rest, {"a": 1, "b": 2, "c": (8, 9)}),
        ('{"a":1,"*":[]}', plain, {"a": 1, "b": 2}),
        ('{"a":1,"x":9}', extra, {"a": 1, "b": {"x": 9}}),
        ('{"a":1,"**":{"b":9}}', plain, {"a": 1, "b": 9}),
        (
            '{"a":1,"b":2,"**":{"e":5,"h":8}}',
            everything,
            {"a": 1, "b": 2, "c": 3, "d": (), "e": 5, "f": 6, "g": {"h": 8}},
        ),
    ],
)
def test_a_function_that_changed_takes_what_it_still_can(
    text: str, after: Callable[..., object], result: object
) -> None:
    assert runs(task(after), text) == result


@pytest.mark.parametrize(
    ("text", "after", "problem"),
    [
        ('{"b":1}', plain, "arguments: 'a' is missing; it takes a: int, b: int = …"),
        ('{"a":1,"c":1}', plain, "arguments: 'c' is not expected; it takes a: int, b: int = …"),
        ('{"a":1,"b":2,"**":{"b":9}}', plain, "arguments: 'b' is not expected; "),
        ('{"a":"1"}', plain, "a: '1' does not fit int; input should be a valid integer"),
        ('{"a":null}', plain, "a: None does not fit int; "),
        ('{"a":1,"*":[2]}', plain, "arguments: 2 is one argument too many; "),
        ('{"a":1,"*":["x"]}', rest, "*c: 'x' does not fit int; "),
        ('{"a":1,"x":"x"}', extra, "**b: 'x' does not fit int; "),
        ('{"a":1,"*":5}', rest, 'use a list under "*" and an object under "**"'),
        ('{"a":1,"**":[5]}', extra, 'use a list under "*" and an object under "**"'),
        ("[1]", plain, "arguments: [1] is not an object; use a JSON object"),
        ("null", plain, "arguments: None is not an object; use a JSON object"),
        ("", plain, "arguments: '' is not JSON; "),
        ('{"a":1', plain, "is not JSON; "),
        ('{"a":9223372036854775808}', plain, "is out of range"),
        ("\x80\x04K\x01.", plain, "is not JSON; "),
    ],
)
def test_stored_arguments_that_no_longer_fit_are_unreadable(
    text: str, after: Callable[..., object], problem: str
) -> None:
    later = task(after)
    with pytest.raises(rota.UnreadableArguments) as refused:
        later.load(text)
    assert problem in refused.value.problem
    assert str(refused.value) == f"{later.name}: the stored arguments cannot be read: {refused.value.problem}"


@given(st.text() | st.dictionaries(NAMES, st.integers(0, 3) | st.text(max_size=1)).map(str), st.sampled_from(SHAPES))
def test_no_stored_text_breaks_a_worker(text: str, function: Callable[..., object]) -> None:
    later = task(function)
    try:
        args, kwargs = later.load(text.replace("'", '"'))
    except rota.UnreadableArguments:
        return
    function(*args, **kwargs)


# Results.


def test_a_result_goes_by_the_return_annotation() -> None:
    def when() -> dict[str, timedelta]:
        return {}

    later = task(when)
    assert later.dump_result({"a": timedelta(minutes=1)}) == '{"a":"PT1M"}'
    assert later.load_result('{"a":"PT1M"}') == {"a": timedelta(minutes=1)}


def test_a_function_that_promises_nothing_may_return_plain_data() -> None:
    later = task(bare)
    assert later.load_result(later.dump_result([1, {"a": None}])) == [1, {"a": None}]


def test_a_function_that_never_returns_may_be_a_task() -> None:
    def stop() -> Never:
        raise SystemExit

    assert task(stop).dump_result(None) == "null"


@pytest.mark.parametrize("value", ["7", 7.5, None, 2**63])
def test_a_result_that_is_not_what_was_promised_is_refused(value: object) -> None:
    with pytest.raises(rota.InvalidData, match=rf"^{refresh.name}\(return\): "):
        refresh.dump_result(value)


@pytest.mark.parametrize("text", ['"7"', "7.5", "null", "x"])
def test_a_stored_result_that_is_not_what_is_promised_is_refused(text: str) -> None:
    with pytest.raises(rota.InvalidData, match=rf"^{refresh.name}\(return\): "):
        refresh.load_result(text)


# What may be a task.


class Session:
    """Something that no JSON can carry."""


class Options(TypedDict):
    a: int


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> Any:
    yield 1


def takes_a_session(session: Session) -> None: ...


def returns_a_session() -> Session:
    return Session()


def takes_options(**options: Unpack[Options]) -> None: ...


def dangling(feed: "Nowhere") -> None: ...  # type: ignore[name-defined]  # noqa: F821


def dangling_inside(feed: list["Nowhere"]) -> None: ...  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (generator, "task: 'generator' is a generator; return the result instead of yielding it"),
        (async_generator, "task: 'async_generator' is a generator; "),
        (Session, "is not a function; use a function, made by def or async def"),
        (print, "is not a function; "),
        (functools.partial(plain, 1), "is not a function; "),
        (None, "is not a function; "),
        (refresh, "is not a function; "),
        (lambda: None, "use letters, digits, _ . - and :"),
        (takes_a_session, "takes_a_session(session): 'Session' cannot be written as JSON; use plain data, datetime"),
        (returns_a_session, "returns_a_session(return): 'Session' cannot be written as JSON; "),
        (takes_options, "takes_options(**options): "),
        (dangling, "name 'Nowhere' is not defined"),
        (dangling_inside, "name 'Nowhere' is not defined"),
    ],
)
def test_what_cannot_be_a_task_is_refused_where_it_is_decorated(function: Any, message: str) -> None:
    for decorator in (App().task(), App().task if function is not None else App().task()):
        with pytest.raises(rota.InvalidTask) as refused:
            decorator(function)
        assert message in str(refused.value)


@dataclass(frozen=True)
class Order:
    number: int


def imported(tmp_path: Path, source: str) -> ModuleType:
    path = tmp_path / "lazily.py"
    path.write_text(source)
    spec = importlib.util.spec_from_file_location("lazily", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_annotations_that_are_text_are_understood(tmp_path: Path) -> None:
    module = imported(
        tmp_path,
        "from __future__ import annotations\n"
        "from typing import Annotated\n"
        "from pydantic import Field\n"
        "import datetime\n"
        "def remind(when: datetime.datetime, often: Annotated[int, Field(gt=0)]) -> list[datetime.date]: ...\n",
    )
    later = task(module.remind)
    when = datetime(2027, 1, 1, tzinfo=UTC)
    assert later.load(later.call(when, 1).args_json) == ((), {"when": when, "often": 1})
    assert later.load_result('["2027-01-01"]') == [date(2027, 1, 1)]
    with pytest.raises(rota.InvalidArguments):
        later.call(when, 0)


def test_a_name_that_only_the_type_checker_imports_is_an_error_that_says_so(tmp_path: Path) -> None:
    module = imported(
        tmp_path,
        "from __future__ import annotations\n"
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from decimal import Decimal\n"
        "def pay(amount: Decimal) -> None: ...\n",
    )
    with pytest.raises(rota.InvalidTask, match=r"name 'Decimal' is not defined.*not under TYPE_CHECKING"):
        task(module.pay)


def test_a_function_inside_a_decorator_is_seen_through() -> None:
    @functools.wraps(takes_an_order)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return takes_an_order(*args, **kwargs) + 1

    later = task(wrapper)
    assert later.name.endswith(".takes_an_order")
    assert runs(later, later.call(Order(7)).args_json) == 8
    with pytest.raises(rota.InvalidArguments):
        later.call(7)


def takes_an_order(order: Order) -> int:
    return order.number


# Names.


def test_a_task_is_named_for_its_module_and_itself() -> None:
    assert refresh.name == f"{__name__}.refresh"
    assert report.name == "reports:weekly"


def test_a_function_inside_another_is_named_for_both() -> None:
    def inner() -> None: ...

    assert default_name(inner) == f"{__name__}.test_a_function_inside_another_is_named_for_both.inner"


SCRIPT = """
from rota.tasks import default_name
def refresh(): ...
if __name__ == "__main__":
    print(default_name(refresh))
"""


def test_the_main_module_is_named_as_others_import_it(tmp_path: Path) -> None:
    (tmp_path / "news").mkdir()
    (tmp_path / "news" / "feeds.py").write_text(SCRIPT)
    for command, name in (["news/feeds.py"], "feeds.refresh"), (["-m", "news.feeds"], "news.feeds.refresh"):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, check=True)
        assert done.stdout.strip() == name


@pytest.mark.parametrize("module", ["__main__", "__mp_main__"])
@pytest.mark.parametrize(
    ("scope", "name"),
    [
        ({"__file__": "/srv/news/feeds.py", "__spec__": None}, "feeds.plain"),
        ({"__spec__": SimpleNamespace(name="news.feeds"), "__file__": "/srv/news/feeds.py"}, "news.feeds.plain"),
        ({}, "__main__.plain"),
        ({"__file__": "<stdin>", "__spec__": None}, "__main__.plain"),
    ],
)
def test_the_main_module_of_a_spawned_process_is_named_alike(module: str, scope: dict[str, object], name: str) -> None:
    function = FunctionType(plain.__code__, {"__name__": module, **scope}, "plain")
    assert default_name(function) == name


def test_the_main_module_is_seen_through_a_decorator_from_another() -> None:
    function = FunctionType(plain.__code__, {"__name__": "__main__", "__file__": "/srv/news/feeds.py"}, "plain")

    @functools.wraps(function)
    def wrapper() -> None: ...

    assert default_name(wrapper) == "feeds.plain"


@pytest.mark.parametrize("name", ["a", "_x", "9", "news.feeds:refresh-all_2", "x" * 200])
def test_a_name_may_be(name: str) -> None:
    assert App().task(name=name)(plain).name == name


@pytest.mark.parametrize("name", ["", "x" * 201, "a b", "-a", ".a", ":a", "größe", "a/b", "a\n", "<a>", 5])
def test_a_name_may_not_be(name: Any) -> None:
    with pytest.raises(rota.InvalidTask, match=r"^name: .* use letters, digits, _ \. - and :, up to 200 characters"):
        App().task(name=name)(plain)


# Options.


def test_options_that_nobody_gave() -> None:
    options = task(plain).options
    assert options == TaskOptions(
        queue="default", priority=50, timeout=None, retry=rota.Retry(1), max_lost=3, on_lost="retry"
    )


def test_options_that_were_given() -> None:
    options = report.options
    assert (options.queue, options.priority, options.timeout) == ("slow", 75, timedelta(seconds=30))
    assert options.retry == rota.Retry()


def test_options_are_a_value() -> None:
    assert TaskOptions(timeout="1m", priority="low") == TaskOptions(timeout=60, priority=25)
    assert hash(TaskOptions(timeout="1m")) == hash(TaskOptions(timeout=60))
    with pytest.raises(FrozenInstanceError):
        TaskOptions().queue = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("priority", "number"),
    [("low", 25), ("normal", 50), ("high", 75), (0, 0), (-32_768, -32_768), (32_767, 32_767)],
)
def test_a_priority_is_a_word_or_a_number(priority: Any, number: int) -> None:
    assert priority_number(priority) == number


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"priority": "urgent"},
            "priority: 'urgent' is not allowed; use low, normal, high, or a whole number from -32,768 to 32,767",
        ),
        ({"priority": 32_768}, "priority: 32768 is not allowed; use a whole number from -32,768 to 32,767"),
        ({"priority": -32_769}, "priority: -32769 is not allowed; "),
        ({"priority": True}, "priority: True is not allowed; "),
        ({"priority": None}, "priority: None is not allowed; "),
        ({"queue": "a b"}, "queue: 'a b' is not allowed; use letters, digits"),
        ({"timeout": 0}, "timeout: 0 is too short"),
        ({"timeout": "soon"}, "timeout: 'soon' is not a duration"),
        ({"retry": 5}, "retry: 5 is not allowed; use a rota.Retry"),
        ({"max_lost": -1}, "max_lost: -1 is not allowed; use a whole number from 0 to 1,000"),
        ({"on_lost": "ignore"}, "on_lost: 'ignore' is not allowed; use retry or fail"),
        ({"isolation": "thread"}, "isolation: 'thread' is not allowed; use 'process', or leave it out"),
    ],
)
def test_options_that_cannot_be_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(rota.Invalid) as refused:
        App().task(**given)
    assert str(refused.value).startswith(message)


def test_an_option_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(TypeError, match="colour"):
        App().task(colour="red")


# The registry.


def test_a_registry_finds_tasks_by_name() -> None:
    assert app.tasks.get("reports:weekly") is report
    assert app.tasks.names == sorted(["reports:weekly", refresh.name])
    assert list(app.tasks) == [app.tasks.get(name) for name in app.tasks.names]
    assert "reports:weekly" in app.tasks
    assert "nobody" not in app.tasks
    assert len(app.tasks) == 2


def test_a_name_that_is_not_known_is_an_error_that_helps() -> None:
    with pytest.raises(rota.UnknownTask) as refused:
        app.tasks.get("reports.weekly")
    assert refused.value.name == "reports.weekly"
    assert str(refused.value) == "task: 'reports.weekly' is not known here; is it reports:weekly?"
    with pytest.raises(LookupError, match="is not known here; is its module imported"):
        Registry().get("reports.weekly")


def test_two_functions_cannot_have_one_name() -> None:
    other = App()
    first = other.task(name="work")(plain)
    with pytest.raises(rota.InvalidTask, match=f"name: 'work' is already the task {__name__}.plain; give one of them"):
        other.task(name="work")(rest)
    assert other.tasks.get("work") is first


def test_the_same_function_may_be_decorated_again_and_the_last_options_count() -> None:
    other = App()
    other.task(plain)
    again = other.task(queue="slow")(plain)
    assert other.tasks.get(again.name).options.queue == "slow"
    assert len(other.tasks) == 1


class Enqueuer:
    async def enqueue(self, call: rota.Call[Any], /) -> Any:
        return call.name, call.args_json


def test_a_task_knows_the_app_that_it_belongs_to() -> None:
    enqueuer, later = Enqueuer(), task(refresh.function)
    Registry(enqueuer).add(later)
    assert later.enqueuer is enqueuer
    with pytest.raises(rota.InvalidTask, match="belongs to another app"):
        Registry(Enqueuer()).add(later)


async def test_enqueueing_a_task_gives_its_call_to_its_app() -> None:
    later = task(refresh.function)
    Registry(Enqueuer()).add(later)
    assert await later.enqueue(42, force=True) == (later.name, '{"feed_id":42,"force":true}')


async def test_a_task_of_no_app_cannot_be_enqueued_and_says_why() -> None:
    with pytest.raises(rota.InvalidTask, match=r"^task: '.*refresh' belongs to no app; decorate .* with @app\.task"):
        await task(refresh.function).enqueue(42)


async def test_what_does_not_fit_is_not_enqueued() -> None:
    later = task(refresh.function)
    Registry(Enqueuer()).add(later)
    with pytest.raises(rota.InvalidArguments):
        await later.enqueue("42")


# What others are told of it.


def test_a_call_is_made_of_json_as_the_signature_says() -> None:
    made = task(refresh.function)
    assert made.call_of('{"force": true, "feed_id": 42}') == made.call(42, force=True)
    for text, wrong in (
        ('{"feed_id": "42"}', r"refresh\(feed_id\): '42' does not fit int"),
        ("{}", "'feed_id' is missing; it takes feed_id: int"),
        ('{"feed_id": 1, "colour": 2}', "'colour' is not expected"),
        ("[1]", "is not an object"),
        ("nope", "is not JSON"),
    ):
        with pytest.raises(rota.InvalidArguments, match=wrong):
            made.call_of(text)


def test_a_signature_is_told_as_a_json_schema() -> None:
    @dataclass
    class Leaf:
        size: int

    @dataclass
    class Tree:
        leaves: list[Leaf]

    def grow(tree: Tree, when: datetime, *more: Leaf, height: float = 1.5, **sizes: int) -> list[Leaf]: ...

    told = task(grow).schema()
    assert told["properties"]["tree"]["properties"]["leaves"]["items"] == {"$ref": "#/$defs/Leaf"}
    assert told["properties"]["when"] == {"type": "string", "format": "date-time"}
    assert told["properties"]["height"] == {"type": "number", "default": 1.5}
    assert told["properties"]["*"]["items"]["title"] == "Leaf"
    assert told["properties"]["**"]["additionalProperties"] == {"type": "integer"}
    assert (told["required"], told["additionalProperties"]) == (["tree", "when"], True)
    assert list(told["$defs"]) == ["Leaf"]
    assert not any("$defs" in each for each in told["properties"].values())
    assert task(grow).result_schema()["type"] == "array"
    assert task(plain).schema()["additionalProperties"] is False


# What it costs to have it there.


@pytest.mark.parametrize("module", ["rota", "rota.cli"])
def test_what_needs_no_task_does_not_wait_for_pydantic(module: str) -> None:
    code = f"import sys, {module}; print([name for name in sys.modules if name.startswith('pydantic')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
