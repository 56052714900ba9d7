"""Values as JSON text: what arrives is what was passed, equal and of the same type, or it is refused at once."""

import json
import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from pathlib import PurePosixPath
from typing import Annotated, Any, Literal, NamedTuple, Optional
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AfterValidator, BaseModel, Field, PlainSerializer, PrivateAttr, SecretStr, computed_field
from typing_extensions import TypedDict

import rota
from rota import codec
from rota.codec import MAX_BYTES, MAX_DEPTH, decode, encode


class Colour(Enum):
    RED = "red"
    SEVEN = 7


class Size(IntEnum):
    SMALL = 1


class Channel(StrEnum):
    EMAIL = "email"


@dataclass(frozen=True)
class Point:
    x: int
    when: datetime
    tags: frozenset[str] = frozenset()


@dataclass(eq=False)
class Upload:
    data: bytes
    note: str | None = None


class Pair(NamedTuple):
    left: int
    right: date


class Row(TypedDict, total=False):
    at: datetime
    count: int


class Feed(BaseModel):
    url: str = Field(alias="URL")
    every: timedelta
    parent: Optional["Feed"] = None

    @computed_field
    def shout(self) -> str:
        return self.url.upper()


def exact(value: object) -> object:
    """Spell a value out: equal for two values where they are equal and of the same types all the way down."""
    kind = type(value).__name__
    if isinstance(value, BaseModel):
        return kind, [(name, exact(getattr(value, name))) for name in type(value).model_fields]
    if is_dataclass(value):
        return kind, [(each.name, exact(getattr(value, each.name))) for each in fields(value)]
    if isinstance(value, list | tuple):
        return kind, [exact(each) for each in value]
    if isinstance(value, dict):
        return kind, sorted(repr((exact(key), exact(each))) for key, each in value.items())
    if isinstance(value, set | frozenset):
        return kind, sorted(repr(exact(each)) for each in value)
    if isinstance(value, datetime | time):
        return kind, value.isoformat(), value.tzinfo is None
    return kind, repr(value)


# Types, each with values of it.

WORDS = st.text(st.characters(codec="utf-8"))
WHOLE = st.integers(-(2**63), 2**63 - 1)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ZONES = st.sampled_from(
    [None, UTC, ZoneInfo("Europe/Berlin"), ZoneInfo("Asia/Kathmandu"), timezone(timedelta(hours=-5))]
)
NAIVE = datetime.fromisoformat("2027-01-01T00:00")
MOMENTS = st.datetimes(datetime.fromisoformat("1973-01-01"), timezones=ZONES)  # since then offsets are whole minutes
TIMES = st.times(timezones=st.sampled_from([None, UTC, timezone(timedelta(hours=5, minutes=45))]))
plain = st.recursive(
    st.none() | st.booleans() | WHOLE | FLOATS | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)
points = st.builds(Point, WHOLE, MOMENTS, st.frozensets(WORDS, max_size=4))
feeds = st.recursive(
    st.builds(Feed, URL=WORDS, every=st.timedeltas()),
    lambda inner: st.builds(Feed, URL=WORDS, every=st.timedeltas(), parent=inner),
    max_leaves=3,
)
rows = st.fixed_dictionaries({}, optional={"at": MOMENTS, "count": WHOLE})

SIMPLE: dict[object, st.SearchStrategy[Any]] = {
    str: WORDS,
    int: WHOLE,
    float: FLOATS,
    bool: st.booleans(),
    None: st.none(),
    Any: plain,
    object: plain,
    dict: st.dictionaries(WORDS, plain, max_size=4),
    list: st.lists(plain, max_size=4),
    bytes: st.binary(),
    date: st.dates(),
    datetime: MOMENTS,
    time: TIMES,
    timedelta: st.timedeltas(),
    Decimal: st.decimals(allow_nan=False, allow_infinity=False),
    UUID: st.uuids(),
    PurePosixPath: st.text("abc/.", min_size=1).map(PurePosixPath),
    Colour: st.sampled_from(Colour),
    Size: st.sampled_from(Size),
    Channel: st.sampled_from(Channel),
    Point: points,
    Upload: st.builds(Upload, st.binary(), st.none() | WORDS),
    Pair: st.builds(Pair, WHOLE, st.dates()),
    Row: rows,
    Feed: feeds,
    Literal["a", "b"]: st.sampled_from(["a", "b"]),
    Literal[1, "1", True]: st.sampled_from([1, "1", True]),
    int | float | str | None: WHOLE | FLOATS | WORDS | st.none(),
    int | float | bool: WHOLE | FLOATS | st.booleans(),
    datetime | int: MOMENTS | WHOLE,
    Annotated[int, Field(ge=0)]: st.integers(0, 9),
    Annotated[Upload, "a note"]: st.builds(Upload, st.binary()),
}
KEYS = [str, int, bool, date, datetime, UUID, Decimal, Size, Channel, bytes]


def composed(inner: object, values: st.SearchStrategy[Any]) -> list[tuple[object, st.SearchStrategy[Any]]]:
    """Make types out of a type, with their values."""
    made = [
        (list[inner], st.lists(values, max_size=4)),
        (tuple[inner, ...], st.lists(values, max_size=4).map(tuple)),
        (tuple[inner, int], st.tuples(values, WHOLE)),
        (dict[str, inner], st.dictionaries(WORDS, values, max_size=4)),
        (inner | None if inner else None, st.none() | values),
    ]
    if inner in KEYS:
        made += [
            (set[inner], st.sets(values, max_size=4)),
            (frozenset[inner], st.frozensets(values, max_size=4)),
            (dict[inner, int], st.dictionaries(values, WHOLE, max_size=4)),
        ]
    return made


ONCE = [pair for inner, values in SIMPLE.items() for pair in composed(inner, values)]
TYPES = [*SIMPLE.items(), *ONCE]
typed_values = st.sampled_from([*TYPES, *(pair for each in ONCE for pair in composed(*each))]).flatmap(
    lambda pair: st.tuples(st.just(pair[0]), pair[1])
)


# The law.


@pytest.mark.parametrize(
    ("type_", "values"), TYPES, ids=lambda each: "" if isinstance(each, st.SearchStrategy) else str(each)
)
def test_a_value_of_every_usual_type_arrives_as_it_is(type_: object, values: st.SearchStrategy[Any]) -> None:
    @given(values)
    @settings(max_examples=15, deadline=None)
    def arrives(value: object) -> None:
        assert exact(decode(encode(value, type_), type_)) == exact(value)

    arrives()


@given(typed_values)
@settings(max_examples=300, deadline=None)
def test_a_value_of_types_made_of_types_arrives_as_it_is(typed: tuple[object, object]) -> None:
    type_, value = typed
    assert exact(decode(encode(value, type_), type_)) == exact(value)


class Odd:
    """An object of a class that nobody knows."""


anything = st.recursive(
    st.one_of(
        *(values for type_, values in SIMPLE.items() if type_ not in (Any, object, dict, list)),
        st.integers(),
        st.floats(),
        st.text(st.characters(exclude_categories=[])),
        st.decimals(),
        st.datetimes(timezones=st.timezones()),
        st.times(timezones=st.timezones()),
        st.complex_numbers(),
        st.fractions(),
        st.sampled_from([Odd(), Odd, int, ..., len, range(3), bytearray(b"x"), SecretStr("x"), lambda: None]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.lists(inner, max_size=3).map(iter),
        st.dictionaries(
            st.one_of(WORDS, WHOLE, st.booleans(), st.none(), MOMENTS, st.tuples(WHOLE)), inner, max_size=3
        ),
        st.dictionaries(WORDS, inner, max_size=3).map(OrderedDict),
        st.sets(st.one_of(WORDS, WHOLE, FLOATS, MOMENTS, st.binary()), max_size=3),
        st.builds(Point, inner, inner, inner),
        st.builds(Upload, inner, inner),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=8,
)
OTHER_TYPES = [
    *(Sequence[int], Iterable[int], set, frozenset, tuple, complex, SecretStr, type[int], OrderedDict[str, Any]),
    *(str | datetime, date | str, Decimal | float, bytes | str, list[Any] | tuple[Any, ...], dict[Any, Any]),
    *(Point | Row | Feed, Literal[1, 2], list[str | bytes | None], dict[int | str, Any]),
]


@given(st.sampled_from([*SIMPLE, *OTHER_TYPES, *(type_ for type_, _ in ONCE)]), anything)
@settings(max_examples=1000, deadline=None)
def test_whatever_is_passed_for_whatever_type_arrives_as_it_is_or_is_refused(type_: object, value: object) -> None:
    try:
        text = encode(value, type_)
    except rota.RotaError:
        return
    assert_arrives(value, decode(text, type_))


def assert_arrives(value: object, arrived: object) -> None:
    """As `exact`, but an int may arrive as a float of the same number."""
    if exact(value) != exact(arrived):
        assert value == arrived
        assert exact(value) == exact(with_ints(value, arrived))


def with_ints(value: object, arrived: Any) -> Any:
    """Put the ints back that floats arrived for, so that nothing else may be different."""
    if type(value) is int and type(arrived) is float:
        return int(arrived)
    if type(value) is type(arrived) and isinstance(value, list | tuple) and not hasattr(value, "_fields"):
        return type(value)(with_ints(*pair) for pair in zip(value, arrived, strict=True))
    if type(value) is type(arrived) and isinstance(value, dict):
        return type(value)((key, with_ints(each, arrived[key])) for key, each in value.items())
    if type(value) is type(arrived) and isinstance(value, set | frozenset):
        return value  # equal, as was asserted
    return arrived


@given(st.text() | plain.map(json.dumps), st.sampled_from([*SIMPLE, *OTHER_TYPES]))
@settings(max_examples=300, deadline=None)
def test_no_text_breaks_the_reader(text: str, type_: object) -> None:
    with suppress(rota.InvalidData):
        decode(text, type_)


# The text.


@given(plain)
def test_the_text_is_json_that_others_read(value: object) -> None:
    assert exact(json.loads(encode(value), parse_constant=pytest.fail)) == exact(value)


@given(plain)
def test_the_text_is_compact(value: object) -> None:
    value = json.loads(json.dumps(value), parse_float=str)  # there are two ways to write a small float
    assert encode(value) == json.dumps(value, separators=(",", ":"), ensure_ascii=False)


@pytest.mark.parametrize(
    ("value", "type_", "text"),
    [
        (NAIVE + timedelta(microseconds=6), datetime, '"2027-01-01T00:00:00.000006"'),
        (datetime(2027, 1, 2, 3, 4, tzinfo=UTC), datetime, '"2027-01-02T03:04:00Z"'),
        (datetime(2027, 7, 2, 3, 4, tzinfo=ZoneInfo("Europe/Berlin")), datetime, '"2027-07-02T03:04:00+02:00"'),
        (timedelta(hours=1, minutes=30), timedelta, '"PT1H30M"'),
        (Decimal("1.10"), Decimal, '"1.10"'),
        (b"\xff\x00", bytes, '"_wA="'),
        (Colour.SEVEN, Colour, "7"),
        (Pair(1, date(2027, 1, 2)), Pair, '[1,"2027-01-02"]'),
        ({date(2027, 1, 2): 1}, dict[date, int], '{"2027-01-02":1}'),
        (Feed(URL="x", every=timedelta(0)), Feed, '{"url":"x","every":"PT0S","parent":null}'),
    ],
)
def test_what_is_stored_is_what_a_person_would_write(value: object, type_: object, text: str) -> None:
    assert encode(value, type_) == text


def test_a_field_is_read_by_its_name_and_by_its_alias() -> None:
    feed = Feed(URL="x", every=timedelta(0))
    assert decode('{"url":"x","every":"PT0S"}', Feed) == decode('{"URL":"x","every":"PT0S"}', Feed) == feed


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (set("qwertyuiop"), set[str]),
        ([set("qwertyuiop")], list[set[str]]),
        ({1: set("qwertyuiop")}, dict[int, set[str]]),
        ({"x": [set("qwertyuiop")]}, dict[str, list[set[str]]]),
        (Point(1, NAIVE, frozenset("qwertyuiop")), Point),
    ],
)
def test_a_set_is_written_in_order_so_that_it_is_the_same_text_in_every_process(value: object, type_: object) -> None:
    assert '["e","i","o","p","q","r","t","u","w","y"]' in encode(value, type_)


# Time.


@pytest.mark.parametrize("fold", [0, 1])
def test_an_hour_that_comes_twice_arrives_as_the_one_that_was_meant(fold: int) -> None:
    moment = datetime(2027, 10, 31, 2, 30, tzinfo=ZoneInfo("Europe/Berlin"), fold=fold)
    (arrived,) = decode(encode({moment}, set[datetime]), set[datetime])
    assert arrived.astimezone(UTC) == moment.astimezone(UTC)
    assert arrived.utcoffset() == moment.utcoffset()


def test_a_naive_datetime_stays_naive_and_an_aware_one_aware() -> None:
    assert decode(encode(NAIVE, datetime), datetime).tzinfo is None
    assert decode(encode(datetime(2027, 1, 1, tzinfo=UTC), datetime), datetime).utcoffset() == timedelta(0)


class FakeDatetime(datetime):
    """As libraries make them that stop the clock in tests."""


def test_a_subclass_of_a_time_type_arrives_as_the_plain_one() -> None:
    arrived = decode(encode(FakeDatetime.fromisoformat("2027-01-01"), datetime), datetime)
    assert type(arrived) is datetime
    assert arrived == NAIVE


# Limits.


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def test_text_up_to_the_limit_passes_and_one_byte_more_does_not() -> None:
    most = "ü" * ((MAX_BYTES - 2) // 2)
    assert decode(encode(most, str), str) == most
    with pytest.raises(rota.InvalidData, match="1,000,001 bytes of JSON' are too many; use at most 1,000,000"):
        encode("x" + most, str)
    with pytest.raises(rota.InvalidData, match="1,000,001 bytes of JSON' are too many; use at most 1,000,000"):
        decode(f'"x{most}"', str)


@pytest.mark.parametrize("type_", [Any, list, list[Any]])
def test_lists_may_lie_so_deep_and_no_deeper(type_: object) -> None:
    assert decode(encode(nested(MAX_DEPTH), type_), type_) == nested(MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 500, 100_000):
        with pytest.raises(rota.InvalidData, match="too deep"):
            encode(nested(depth), type_)
    with pytest.raises(rota.InvalidData, match="too deep"):
        decode("[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1), type_)
    with pytest.raises(rota.InvalidData, match="is not JSON"):
        decode("[" * 100_000 + "]" * 100_000, type_)


def test_a_list_that_holds_itself_is_refused() -> None:
    circle: list[object] = []
    circle.append(circle)
    for type_ in (Any, list, set, tuple):
        with pytest.raises(rota.InvalidData):
            encode(circle, type_)


@pytest.mark.parametrize("type_", [Any, int, list[int], dict[str, Any]])
def test_whole_numbers_have_64_bits(type_: object) -> None:
    def wrapped(number: int) -> object:
        return [number] if type_ == list[int] else {"n": number} if type_ == dict[str, Any] else number

    for number in (2**63 - 1, -(2**63)):
        assert decode(encode(wrapped(number), type_), type_) == wrapped(number)
    for number in (2**63, -(2**63) - 1, 10**400):
        with pytest.raises(rota.InvalidData, match="out of range; use whole numbers of 64 bits"):
            encode(wrapped(number), type_)
        with pytest.raises(rota.InvalidData, match="out of range; use whole numbers of 64 bits"):
            decode(json.dumps(wrapped(number)), type_)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("type_", [Any, float, list[float], float | None])
def test_numbers_are_finite(number: float, type_: object) -> None:
    value = [number] if type_ == list[float] else number
    with pytest.raises(rota.InvalidData, match="is not a number that JSON knows"):
        encode(value, type_)
    with pytest.raises(rota.InvalidData):
        decode(json.dumps(value), type_)
    with pytest.raises(rota.InvalidData, match="is not a number that JSON knows"):
        decode("1e999", type_)


@pytest.mark.parametrize(
    ("value", "type_"),
    [("a\ud800", str), ("\udfff", Any), ({"\ud800": 1}, dict), (["\ud800"], list[str]), ({"\ud800"}, set[str])],
)
def test_half_of_a_character_is_refused(value: object, type_: object) -> None:
    with pytest.raises(rota.InvalidData, match="surrogate"):
        encode(value, type_)


@pytest.mark.parametrize("text", ["", "x", "[1,]", "{'a':1}", "1 2", '"\\ud800"', '"\ud800"', "\x80\x04K\x01.", None])
def test_what_is_not_json_is_refused(text: Any) -> None:
    with pytest.raises(rota.InvalidData):
        decode(text)


# What is refused, and what is said.


class Loud(BaseModel):
    name: str
    _cache: dict[str, int] = PrivateAttr(default_factory=dict)


def with_cache() -> Loud:
    loud = Loud(name="x")
    loud._cache["x"] = 1
    return loud


def grumble(_: object) -> None:
    raise KeyError("grumble")


@dataclass
class Child(Upload):
    more: int = 0


@dataclass
class Memory:
    size: int
    used: int = field(default=0, init=False)


def used() -> Memory:
    memory = Memory(1)
    memory.used = 1
    return memory


@pytest.mark.parametrize(
    ("value", "type_", "message"),
    [
        ("x", int, "value: 'x' does not fit int; input should be a valid integer"),
        (True, int, "value: True does not fit int; input should be a valid integer"),
        (1.0, int, "value: 1.0 does not fit int; input should be a valid integer"),
        ("1", float, "value: '1' does not fit float; input should be a valid number"),
        (1, str, "value: 1 does not fit str; input should be a valid string"),
        (1, bool, "value: 1 does not fit bool; input should be a valid boolean"),
        (None, int, "value: None does not fit int; input should be a valid integer"),
        ([1, "x"], list[int], "value: [1, 'x'] does not fit list[int]; at 1: input should be a valid integer"),
        ((1, 2), list[int], "value: (1, 2) does not fit list[int]; input should be a valid list"),
        ("c", Literal["a", "b"], "value: 'c' does not fit Literal['a', 'b']; input should be 'a' or 'b'"),
        ("2027-01-01", date, "value: '2027-01-01' does not fit date; input should be a valid date"),
        (NAIVE, date, "does not fit date; input should be a valid date"),
        (2**60 + 1, float, "is of type int and would arrive as float; annotate it as int, or pass float"),
        (
            NAIVE,
            Any,
            "is of type datetime and would arrive as str; annotate it as datetime, or pass str",
        ),
        (
            {"when": NAIVE},
            dict,
            "holds datetime.datetime(2027, 1, 1, 0, 0), of type datetime, and would arrive as str; annotate it as",
        ),
        ((1, 2), Any, "is of type tuple and would arrive as list; annotate it as tuple, or pass list"),
        ({1}, Any, "is of type set and would arrive as list; annotate it as set, or pass list"),
        ({1: 2}, Any, "would arrive with {'1': 2} in place of {1: 2}; annotate it with a type that restores it"),
        (b"x", Any, "is of type bytes and would arrive as str; annotate it as bytes"),
        (Channel.EMAIL, Any, "is of type Channel and would arrive as str; annotate it as Channel"),
        (Channel.EMAIL, str, "is of type Channel and would arrive as str; annotate it as Channel, or pass str"),
        (Size.SMALL, int, "is of type Size and would arrive as int; annotate it as Size, or pass int"),
        (Pair(1, date(2027, 1, 1)), tuple[int, date], "is of type Pair and would arrive as tuple; annotate it as Pair"),
        ((1, 2), Sequence[int], "is of type tuple and would arrive as list; annotate it as tuple, or pass list"),
        (NAIVE, str | datetime, "is of type datetime and would arrive as str"),
        (True, Literal[1, 2], "is of type bool and would arrive as int"),
        (time(1, tzinfo=ZoneInfo("Europe/Berlin")), time, "would arrive with datetime.time(1, 0) in place of "),
        (
            datetime(1919, 1, 1, tzinfo=ZoneInfo("Asia/Kathmandu")),  # 5:41:16 ahead
            datetime,
            "would arrive with datetime.datetime(1919, 1, 1, 0, 0, tzinfo=TzInfo(20460)) in place of ",
        ),
        (Child(b"x"), Upload, "is of type Child and would arrive as Upload"),
        (Odd(), Any, "cannot be written as JSON; "),
        (Upload("x"), Upload, "does not fit Upload"),
        (SecretStr("x"), SecretStr, "would arrive with SecretStr('**********') in place of SecretStr('**********')"),
        (with_cache(), Loud, "would arrive with {} in place of {'x': 1}"),
        (used(), Memory, "would arrive with 0 in place of 1"),
        ("A", Annotated[str, AfterValidator(str.lower)], "would arrive with 'a' in place of 'A'"),
        ("A", Annotated[str, AfterValidator(grumble)], "cannot be written as JSON; 'grumble'"),
        ("A", Annotated[str, PlainSerializer(grumble)], "cannot be written as JSON"),
        ("A", Annotated[str, PlainSerializer(lambda _: Odd())], "cannot be written as JSON"),
    ],
)
def test_what_would_not_arrive_as_it_is_is_refused_and_it_is_said_why(
    value: object, type_: object, message: str
) -> None:
    with pytest.raises(rota.InvalidData) as refused:
        encode(value, type_)
    assert message in str(refused.value)


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ('"1"', int, "value: '1' does not fit int; input should be a valid integer"),
        ("1.5", int, "value: 1.5 does not fit int; input should be a valid integer"),
        ('"yesterday"', datetime, "does not fit datetime; "),
        ("0", datetime, "does not fit datetime; "),
        ('{"url":"x"}', Feed, "does not fit Feed; at every: field required"),
        ('"x"', Annotated[str, AfterValidator(grumble)], "cannot be read as "),
    ],
)
def test_what_does_not_fit_is_not_read(text: str, type_: object, message: str) -> None:
    with pytest.raises(rota.InvalidData) as refused:
        decode(text, type_)
    assert message in str(refused.value)


def test_an_int_for_a_float_arrives_as_the_float() -> None:
    assert exact(decode(encode([1, 2.5], list[float]), list[float])) == exact([1.0, 2.5])
    assert encode(1, float) == encode(1.0, float)


class Trap:
    def __reduce__(self) -> Any:
        pytest.fail("somebody pickles")


def test_nothing_is_ever_pickled() -> None:
    with pytest.raises(rota.InvalidData):
        encode(Trap())


# Types.


@dataclass
class Dangling:
    other: "Nowhere"  # type: ignore[name-defined]  # noqa: F821


@pytest.mark.parametrize(
    ("type_", "message"),
    [
        (Odd, "type: 'Odd' cannot be written as JSON; use plain data, datetime"),
        (list[Odd], "cannot be written as JSON; use plain data, datetime"),
        (Dangling, "type: 'Dangling' cannot be written as JSON; name 'Nowhere' is not defined"),
        (list[Dangling], "cannot be written as JSON; name 'Nowhere' is not defined"),
    ],
)
def test_a_type_that_json_cannot_carry_is_refused_before_there_is_a_value(type_: object, message: str) -> None:
    with pytest.raises(rota.InvalidData) as refused:
        codec.Codec(type_)
    assert message in str(refused.value)


def test_what_is_worked_out_for_a_type_is_kept() -> None:
    assert codec._codec(list[int]) is codec._codec(list[int])
    assert codec._codec(Point) is codec._codec(Point)


def test_types_that_are_equal_but_read_in_another_order_are_kept_apart() -> None:
    assert codec._codec(date | str) is not codec._codec(str | date)


def test_an_annotation_that_cannot_be_hashed_serves_too() -> None:
    assert decode(encode(1, Annotated[int, []]), Annotated[int, []]) == 1
