"""Errors: their tree is the one that is written down, and what they say is one line that helps."""

import copy
import inspect
import pickle  # noqa: TID251 (errors must survive other people's pickling)
import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota
from rota import errors

CLASSES = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, BaseException) and each.__module__ == errors.__name__
]
PLAIN = [rota.Invalid, rota.InvalidDuration, rota.InvalidMoment, rota.InvalidPolicy, rota.InvalidRule, rota.InvalidZone]
every_error = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
every_plain_one = pytest.mark.parametrize("kind", PLAIN, ids=lambda kind: kind.__name__)

LINE = re.compile(r"(?P<indent>[ │├└─]*)(?P<name>[A-Z]\w+)(?: \(an? (?P<other>\w+)\))?(?:  +(?P<says>\S.*))?")


def written_tree() -> dict[str, set[str]]:
    """Read the tree of the module's docstring: each name with what it stands under and what else it is."""
    path: list[str] = []
    found: dict[str, set[str]] = {}
    for line in str(errors.__doc__).strip().splitlines()[2:]:
        node = LINE.fullmatch(line)
        assert node, f"the tree has a line that is none of its own: {line!r}"
        del path[len(node["indent"]) // 4 :]
        found[node["name"]] = {path[-1] if path else "Exception", *filter(None, [node["other"]])}
        path.append(node["name"])
    return found


def test_the_tree_that_is_written_down_is_the_tree() -> None:
    assert written_tree() == {each.__name__: {base.__name__ for base in each.__bases__} for each in CLASSES}


def test_the_tree_is_sorted() -> None:
    names = list(written_tree())
    for parent in ("RotaError", "Invalid"):
        below = [name for name in names if parent in written_tree()[name]]
        assert below == sorted(below)


@every_error
def test_every_error_is_one_of_rotas_and_says_what_it_is(kind: type[rota.RotaError]) -> None:
    assert issubclass(kind, rota.RotaError)
    assert kind.__doc__


@every_plain_one
def test_what_is_invalid_is_a_value_error(kind: type[rota.Invalid]) -> None:
    with pytest.raises(ValueError, match=r"^tz: 'Mars' is not allowed; use Europe/Berlin$"):
        raise kind("tz", "Mars", "use Europe/Berlin")


def test_what_is_missing_is_an_import_error() -> None:
    with pytest.raises(ImportError, match=r"^Redis needs .* pip install 'rota\[redis\]'$") as caught:
        raise rota.MissingExtra("redis", "Redis")
    assert (caught.value.extra, caught.value.purpose) == ("redis", "Redis")  # type: ignore[attr-defined]


@every_plain_one
def test_a_message_names_the_field_the_value_the_problem_and_what_is_allowed(kind: type[rota.Invalid]) -> None:
    error = kind("hour", "25", "use 0 to 23", "is no hour")
    assert str(error) == "hour: '25' is no hour; use 0 to 23"
    assert (error.field, error.value, error.allowed, error.problem) == ("hour", "25", "use 0 to 23", "is no hour")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("a\nb", r"'a\nb'"),
        ("\r\n\t", r"'\r\n\t'"),
        ("\x1b[31mred", r"'\x1b[31mred'"),
        ("\x00", r"'\x00'"),
        ("\x85\u2028\u2029", r"'\x85\u2028\u2029'"),
        ("\u202etxt", r"'\u202etxt'"),
        ("\ud800", r"'\ud800'"),
        ("naïve ٣", r"'na\xefve \u0663'"),
        ("it's", '"it\'s"'),
        (25, "25"),
        (None, "None"),
        (b"a\nb", r"b'a\nb'"),
        (["a\nb"], r"['a\nb']"),
    ],
)
def test_a_value_is_shown_so_that_one_can_see_what_it_holds(value: object, shown: str) -> None:
    assert str(rota.Invalid("field", value, "use another")) == f"field: {shown} is not allowed; use another"


@pytest.mark.parametrize("value", ["x" * 10_000, ["x" * 10_000], list(range(10_000)), b"x" * 10_000, 10**4_000])
def test_a_long_value_is_cut_in_the_message_and_whole_in_the_error(value: object) -> None:
    error = rota.Invalid("field", value, "use less")
    assert re.fullmatch(r"field: .{79}… is not allowed; use less", str(error))
    assert error.value == value


def test_a_value_of_eighty_characters_is_not_cut() -> None:
    assert str(rota.Invalid("field", "x" * 78, "use less")) == f"field: '{'x' * 78}' is not allowed; use less"


class Loud:
    def __repr__(self) -> str:
        return "<Loud\nand \x1b[31mred>"


class Broken:
    def __repr__(self) -> str:
        raise ZeroDivisionError


@pytest.mark.parametrize(
    "value",
    [Loud(), [Loud()], Broken(), {"key": Broken()}, 10**5_000],
    ids=["loud", "louds", "broken", "brokens", "huge"],
)
def test_a_value_that_shows_itself_badly_does_not_spoil_the_message(value: object) -> None:
    message = str(rota.Invalid("field", value, "use another"))
    assert message.isprintable()
    assert message.startswith("field: ")
    assert message.endswith(" is not allowed; use another")


@given(st.text() | st.binary() | st.floats() | st.lists(st.text()) | st.dictionaries(st.text(), st.text()))
def test_whatever_the_value_is_the_message_is_one_short_line(value: object) -> None:
    message = str(rota.Invalid("field", value, "use another"))
    assert message.isprintable()
    assert len(message) <= len("field:  is not allowed; use another") + 80


def test_errors_of_rules_say_which_field_is_wrong() -> None:
    with pytest.raises(rota.InvalidRule, match=r"^hour: '25' is not allowed; use 0 to 23"):
        rota.Cron("0 25 * * *")


def made(kind: type[rota.RotaError]) -> rota.RotaError:
    """Make an error of a kind, with a word for each value that its constructor wants."""
    if kind.__init__ is Exception.__init__:
        return kind("something went wrong")
    wanted = list(inspect.signature(kind).parameters.values())
    return kind(*(("one", "two") if "Sequence" in str(each.annotation) else f"some {each.name}" for each in wanted))


COPIES: dict[str, Callable[[rota.RotaError], rota.RotaError]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda error, protocol=protocol: pickle.loads(pickle.dumps(error, protocol))  # noqa: S301
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1)
    },
}


@every_error
@pytest.mark.parametrize("name", COPIES)
def test_an_error_can_be_copied_and_pickled(kind: type[rota.RotaError], name: str) -> None:
    error = made(kind)
    again = COPIES[name](error)
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.args == error.args
    assert vars(again) == vars(error)
