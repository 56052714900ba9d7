"""Rules as values and as text: what is written reads back, nothing changes, and no text is ever run."""

import builtins
import copy
import dataclasses
import pickle  # noqa: TID251 (rules must survive other people's pickling)
import warnings
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rota

NOON = datetime(2027, 5, 4, 12, tzinfo=UTC)
BOUNDS = {"start": "2027-01-01T00:00Z", "end": "2028-01-01T00:00:00.000001+02:00"}

RULES: list[rota.Rule] = [
    rota.Cron("0 9 * * MON"),
    rota.Cron("0 9 * * mon-fri", tz="Europe/Berlin"),
    rota.Cron(" 0\t9  *  * * ", ZoneInfo("America/Argentina/Buenos_Aires")),
    rota.Cron("@Daily", tz="Asia/Tokyo"),
    rota.Cron("*/10 * * * * *", gap="skip"),
    rota.Cron("30 2 * * 5L", tz="Europe/Berlin", gap="skip", repeat="both", start=NOON, end="2028-01-01T00:00Z"),
    rota.Every("1h"),
    rota.Every(1e6),
    rota.Every("1w2d3h4m5s"),
    rota.Every("1w2d3h4m5s6ms7us", since="start"),
    rota.Every(timedelta(days=36_525)),
    rota.Every("90m", origin="2027-05-04T12:00:25+02:00"),
    rota.Every("90m", since="success", **BOUNDS),
    rota.Every("90m", since="finish", start=NOON),
    rota.Every("90m", since="start", end=NOON),
    rota.At(NOON),
    rota.At(NOON.astimezone(ZoneInfo("Europe/Berlin"))),
    rota.At([NOON + n * timedelta(hours=1, microseconds=1) for n in range(20)], tz="Asia/Kolkata", **BOUNDS),
    rota.Calendar("day"),
    rota.Calendar("day", every=3, at=["9:00", "18:30:15"], origin=date(2027, 5, 4)),
    rota.Calendar("week", every=2, on=["TUE", "thursday"], at="10:00", tz="Europe/Berlin", origin="2027-05-04"),
    rota.Calendar("week", on="weekday"),
    rota.Calendar("month", every=2, on="last weekday", at="10:00", tz="Europe/Berlin", gap="skip", repeat="second"),
    rota.Calendar("month", on=["1", "15", "last", "2nd TUE", "last FRI", "first weekday"], **BOUNDS),
    rota.Calendar("year", on=["DEC 25", "FEB last", "NOV 4th THU"]),
    rota.AnyOf(rota.Every("1h")),
    rota.AnyOf(rota.Cron("0 9 * * *", tz="Europe/Berlin"), rota.At([NOON, NOON + timedelta(days=1)]), **BOUNDS),
    rota.AnyOf(rota.AnyOf(rota.AnyOf(rota.Every("1h"), end=NOON)), rota.Calendar("day"), start="2027-01-01T00:00Z"),
]
every_rule = pytest.mark.parametrize("rule", RULES, ids=str)


WRITTEN = {
    "Cron('0 9 * * MON', tz='Europe/Berlin')": rota.Cron("0 9 * * mon", tz="Europe/Berlin"),
    "Cron('@daily')": rota.Cron("@DAILY", tz="UTC", gap="after", repeat="first"),
    "Cron('0 9 * * *', gap='skip', start='2027-05-04T12:00:00Z')": rota.Cron("0 9 * * *", gap="skip", start=NOON),
    "Every('1h30m')": rota.Every(5400),
    "Every('7d', origin='2027-05-04T12:00:00Z')": rota.Every("1w", origin=NOON),
    "Every('1m', since='finish')": rota.Every(60, since="finish"),
    "At('2027-05-04T12:00:00Z')": rota.At("2027-05-04T14:00+02:00"),
    "At(['2027-05-04T12:00:00Z', '2027-05-04T12:00:00.000001Z'], tz='Asia/Tokyo')": rota.At(
        [NOON + timedelta(microseconds=1), NOON], tz="Asia/Tokyo"
    ),
    "Calendar('day')": rota.Calendar("day", every=1, at="00:00", origin="1970-01-01"),
    "Calendar('month', every=2, on='last weekday', at='10:00', tz='Europe/Berlin')": rota.Calendar(
        "month", every=2, on=["LAST WEEKDAY"], at=["10:00"], tz="Europe/Berlin"
    ),
    "Calendar('week', on=['TUE', 'SUN'], at=['09:00', '18:00'], origin='2027-05-04')": rota.Calendar(
        "week", on=["tuesday", "sun"], at=["18:00", "9:00"], origin=date(2027, 5, 4)
    ),
    "AnyOf(Every('1h'), Cron('0 9 * * *'), end='2027-05-04T12:00:00Z')": rota.AnyOf(
        rota.Every("1h"), rota.Cron("0 9 * * *"), end=NOON
    ),
}


@pytest.mark.parametrize(("text", "rule"), WRITTEN.items())
def test_a_rule_is_written_in_its_shortest_form(text: str, rule: rota.Rule) -> None:
    assert str(rule) == repr(rule) == text


@every_rule
def test_the_text_of_a_rule_reads_back(rule: rota.Rule) -> None:
    again = rota.Rule.parse(str(rule))
    assert again == rule
    assert hash(again) == hash(rule)
    assert str(again) == str(rule)
    assert type(again) is type(rule)


@every_rule
def test_the_text_of_a_rule_is_python(rule: rota.Rule) -> None:
    assert eval(repr(rule), dict(vars(rota))) == rule  # noqa: S307 (our own text)


@every_rule
def test_a_rule_that_was_read_back_names_the_same_instants(rule: rota.Rule) -> None:
    again = rota.Rule.parse(str(rule))
    assert again.upcoming(NOON, 30) == rule.upcoming(NOON, 30)
    assert again.previous(NOON) == rule.previous(NOON)
    assert again.words() == rule.words()


@every_rule
def test_a_rule_is_a_value_like_any_other(rule: rota.Rule) -> None:
    others = [other for other in RULES if other is not rule]
    assert rule not in others
    assert {rule: "it", **dict.fromkeys(others, "another")}[rota.Rule.parse(str(rule))] == "it"
    assert rule != str(rule)


COPIES: dict[str, Callable[[rota.Rule], rota.Rule]] = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    **{
        f"pickle {protocol}": lambda rule, protocol=protocol: pickle.loads(pickle.dumps(rule, protocol))  # noqa: S301
        for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)
    },
}


@every_rule
@pytest.mark.parametrize("name", COPIES)
def test_a_copy_is_equal_and_works(rule: rota.Rule, name: str) -> None:
    made = COPIES[name](rule)
    assert made == rule
    assert hash(made) == hash(rule)
    assert str(made) == str(rule)
    assert made.upcoming(NOON, 5) == rule.upcoming(NOON, 5)
    assert made.previous(NOON) == rule.previous(NOON)
    assert made.count(NOON, NOON + timedelta(days=3)) == rule.count(NOON, NOON + timedelta(days=3))


@every_rule
def test_nothing_of_a_rule_can_be_set_or_deleted(rule: rota.Rule) -> None:
    for name in [*(part.name for part in dataclasses.fields(rule)), "something_new"]:
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(rule, name, getattr(rule, name, None))
        with pytest.raises(dataclasses.FrozenInstanceError):
            delattr(rule, name)


@every_rule
def test_asking_changes_nothing(rule: rota.Rule) -> None:
    text, number = str(rule), hash(rule)
    rule.upcoming(NOON, 50)
    rule.previous(NOON)
    rule.count(NOON, NOON + timedelta(days=50))
    rule.words()
    assert (str(rule), hash(rule)) == (text, number)


def test_what_differs_in_one_value_is_another_rule() -> None:
    plain = rota.Cron("0 9 * * *")
    for other in (
        rota.Cron("0 10 * * *"),
        rota.Cron("0 9 * * *", tz="Europe/Berlin"),
        rota.Cron("0 9 * * *", gap="skip"),
        rota.Cron("0 9 * * *", repeat="both"),
        rota.Cron("0 9 * * *", start=NOON),
        rota.Cron("0 9 * * *", end=NOON),
    ):
        assert other != plain
        assert rota.Rule.parse(str(other)) != plain


def test_a_kind_of_rule_reads_only_its_own_text() -> None:
    assert rota.Cron.parse("Cron('0 9 * * *')") == rota.Cron("0 9 * * *")
    with pytest.raises(rota.InvalidRule, match=r"is another kind of rule; use the text of Cron$"):
        rota.Cron.parse("Every('1h')")


@pytest.mark.parametrize(
    "text", ["Every('1h')", ' Every("1h")\n', "Every( '1h' )", "Every(interval='1h')", "Every(3600)", "Every(3600.0)"]
)
def test_text_may_be_written_as_people_write_python(text: str) -> None:
    assert rota.Rule.parse(text) == rota.Every("1h")


CODE = {
    "a call": "canary()",
    "an import": "__import__('os').system('true')",
    "a call inside": "Every(canary())",
    "a call by name": "Every(interval=canary())",
    "a call in a list": "At([canary()])",
    "a builtin": "Every(str('1h'))",
    "a name": "Every(canary)",
    "a constant name": "Every(True and '1h')",
    "an attribute": "Every('1h').next",
    "an attribute call": "Every('1h').next(canary())",
    "a method of a class": "Rule.parse(\"Every('1h')\")",
    "a module": "rota.Every('1h')",
    "a dunder": "Every.__init__('1h')",
    "a class": "Every",
    "the base class": "Rule()",
    "a call of a call": "Every('1h')()",
    "a subscript": "Every(['1h'][0])",
    "a lambda": "(lambda: canary())()",
    "a lambda inside": "Every(lambda: canary())",
    "a list comprehension": "At([canary() for _ in 'ab'])",
    "a set comprehension": "At({canary() for _ in 'ab'})",
    "a dict comprehension": "At({canary(): 1 for _ in 'ab'})",
    "a generator": "At(canary() for _ in 'ab')",
    "an f-string": "Every(f'{canary()}')",
    "an f-string of text": "Every(f'1h')",
    "a format": "Every('%s' % canary())",
    "arithmetic": "Every(60 * 60)",
    "a power": "Every(9 ** 9 ** 9 ** 9)",
    "a repetition": "Every('1' * 10 ** 12)",
    "a negative number": "Every(-3600)",
    "a comparison": "Every(1 < 2)",
    "a choice": "Every('1h' if canary() else '2h')",
    "an assignment": "x = Every('1h')",
    "a walrus": "(x := Every('1h'))",
    "an await": "await canary()",
    "a yield": "(yield canary())",
    "unpacked names": "Every(**{'interval': '1h'})",
    "unpacked names of a call": "Every(**canary())",
    "unpacked values": "Every(*['1h'])",
    "unpacked values of a call": "AnyOf(*canary())",
    "two statements": "Every('1h'); canary()",
    "two lines": "Every('1h')\ncanary()",
    "a statement": "import os",
    "a decorator": "@canary\ndef x(): ...",
    "bytes": "Every(b'1h')",
    "a complex number": "Every(1j)",
    "an ellipsis": "Every(...)",
    "a set": "At({'2027-05-04T12:00Z'})",
    "a dict": "At({'2027-05-04T12:00Z': 1})",
    "two rules": "Every('1h'), Every('2h')",
    "a rule in brackets": "[Every('1h')]",
}


@pytest.fixture
def canary(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A function that everyone can reach; it notes that it was run."""
    runs: list[str] = []

    def sing(*_: object) -> str:
        runs.append("run")
        return "1h"

    monkeypatch.setattr(builtins, "canary", sing, raising=False)
    return runs


@pytest.mark.parametrize("name", CODE)
def test_code_is_refused_and_never_run(name: str, canary: list[str]) -> None:
    with pytest.raises(rota.InvalidRule):
        rota.Rule.parse(CODE[name])
    assert canary == []


WRONG = {
    "nothing": "",
    "blanks": "  \n ",
    "a word": "hourly",
    "a bare expression": "0 9 * * *",
    "an unknown name": "Hourly('1h')",
    "a name in another case": "every('1h')",
    "no arguments": "Every()",
    "too many arguments": "Every('1h', 'due')",
    "an unknown argument": "Every('1h', often=True)",
    "an argument twice": "Every('1h', interval='1h')",
    "a name twice": "Every('1h', since='due', since='due')",
    "an argument that is no value of the user's": "Every('1h', series=None)",
    "the wrong kind": "Cron(5)",
    "no list": "Calendar('week', on=5)",
    "no rule": "AnyOf('1h')",
    "a rule as a value": "Cron(Every('1h'))",
    "a bracket too few": "Every('1h'",
    "a bracket too many": "Every('1h'))",
    "a quote too few": "Every('1h)",
    "a null": "Every('1h')\0",
    "a null inside": "Every('1h\0')",
    "half a character": "Every('\ud800')",
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_text_of_a_rule_is_refused(name: str) -> None:
    with pytest.raises(rota.InvalidRule):
        rota.Rule.parse(WRONG[name])


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("Every('soon')", rota.InvalidDuration),
        ("Every(0)", rota.InvalidDuration),
        ("Every(1e999)", rota.InvalidDuration),
        ("Every(None)", rota.InvalidDuration),
        ("At('noon')", rota.InvalidMoment),
        ("Cron('0 9 * * *', tz='Middle/Earth')", rota.InvalidZone),
        ("Cron('0 25 * * *')", rota.InvalidRule),
        ("AnyOf(Every('1h'), Cron('0 25 * * *'))", rota.InvalidRule),
    ],
)
def test_a_wrong_value_is_refused_as_the_rule_itself_refuses_it(text: str, error: type[rota.Invalid]) -> None:
    with pytest.raises(error) as caught:
        rota.Rule.parse(text)
    assert caught.value.field != "rule"


DEEP = {
    "rules": "AnyOf(" * 10_000 + "Every('1h')" + ")" * 10_000,
    "brackets": "(" * 10_000 + "Every('1h')" + ")" * 10_000,
    "lists": "At(" + "[" * 10_000 + "]" * 10_000 + ")",
    "signs": "-" * 90_000 + "1",
    "words": "not " * 20_000 + "1",
    "lambdas": "lambda:" * 10_000 + "1",
    "sums": "1+" * 40_000 + "1",
    "attributes": "a" + ".b" * 40_000,
    "calls": "Every" + "()" * 40_000,
    "subscripts": "a" + "[0]" * 30_000,
    "choices": "1 if 1 else " * 8_000 + "1",
    "open f-strings": "f'" + "{" * 40_000,
}


@pytest.mark.parametrize("name", DEEP)
def test_no_depth_is_too_much(name: str) -> None:
    with pytest.raises(rota.InvalidRule):
        rota.Rule.parse(DEEP[name])


def test_a_megabyte_is_refused_unread() -> None:
    with pytest.raises(rota.InvalidRule, match=r"^rule: .{80} is not the text of a rule"):
        rota.Rule.parse("Every('1h')" + " " * 1_000_000 + "#")
    with pytest.raises(rota.InvalidRule):
        rota.Rule.parse("Every(" + "9" * 90_000 + ")")


@pytest.mark.parametrize("value", [None, 1, b"Every('1h')", rota.Every("1h"), ["Every('1h')"], bytearray(b"x")])
def test_what_is_no_text_is_refused(value: object) -> None:
    with pytest.raises(rota.InvalidRule):
        rota.Rule.parse(value)  # type: ignore[arg-type]


def test_reading_text_never_warns() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for text in ("Cron('\\d')", "Every('\\8')", "Every(1if 2else 3)", "'a'()", "1 is 1"):
            with pytest.raises(rota.Invalid):
                rota.Rule.parse(text)
    assert [str(each.message) for each in caught] == []


def many_moments() -> rota.Rule:
    days = [[NOON + timedelta(days=day, minutes=n) for n in range(1_000)] for day in range(10)]
    return rota.AnyOf(*map(rota.At, days))


def deeply_nested() -> rota.Rule:
    rule: rota.Rule = rota.Every("1h")
    for _ in range(250):
        rule = rota.AnyOf(rule)
    return rule


def test_a_full_list_of_moments_reads_back() -> None:
    rule = rota.At([NOON + n * timedelta(days=1, microseconds=1) for n in range(1_000)], tz="Asia/Kolkata", **BOUNDS)
    assert rota.Rule.parse(str(rule)) == rule


@pytest.mark.parametrize("make", [many_moments, deeply_nested])
def test_no_rule_can_be_made_that_its_text_cannot_carry(make: Callable[[], rota.Rule]) -> None:
    try:
        rule = make()
    except rota.InvalidRule:
        return  # to refuse it is right as well
    assert rota.Rule.parse(str(rule)) == rule


@given(st.text(max_size=60) | st.text("CronEvyAt()[]'\",=0123456789* hms._#\\{}:", max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    with warnings.catch_warnings(), suppress(rota.Invalid):
        warnings.simplefilter("ignore")
        assert isinstance(rota.Rule.parse(text), rota.Rule)


WORDS = st.sampled_from(
    ["'1h'", "'0 9 * * *'", "'week'", "'MON'", "5", "0", "1e9", "None", "[]", "['1', 'MON']", "Every('1h')"]
)
NAMES = st.sampled_from(
    ["interval", "since", "origin", "expr", "tz", "gap", "on", "at", "every", "unit", "start", "moments"]
)


@given(
    st.sampled_from(["Cron", "Every", "At", "Calendar", "AnyOf"]),
    st.lists(WORDS, max_size=2),
    st.dictionaries(NAMES, WORDS, max_size=3),
)
def test_whatever_values_are_given_a_rule_is_made_or_refused(
    kind: str, values: list[str], named: dict[str, str]
) -> None:
    text = f"{kind}({', '.join([*values, *(f'{name}={value}' for name, value in named.items())])})"
    with suppress(rota.Invalid):
        rule = rota.Rule.parse(text)
        assert rota.Rule.parse(str(rule)) == rule
