"""What cron text is refused, and how clearly; what looks odd and is right; and that no text breaks the parser."""

import string
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rota

MOMENT = datetime(2024, 1, 1, 0, 0, tzinfo=UTC)  # a Monday
BOUNDS = {
    "second": ("0", "59"),
    "minute": ("0", "59"),
    "hour": ("0", "23"),
    "day of month": ("1", "31"),
    "month": ("1", "12"),
    "day of week": ("0", "7"),
}

# Text that is wrong in one field: (the field, what stands in it), to be set into an expression with that field.
WRONG_FIELDS = {
    "second": ["60", "*/0", "1,,2", "5-1", "-1", "?", "MON", "L", "1-60", "x"],
    "minute": [
        *("60", "99", "-1", "1-", "-", "1--2", "1-2-3", "5-1", "59-0", "10-5/2", "0-60", "60/2"),
        *("*/0", "*/00", "5/0", "1-5/0", "*/", "/5", "/", "*/-1", "*/x", "*/*", "*/2/3", "*/1.5", "5/"),
        *("1,", ",1", "1,,2", ","),
        *("**", "*5", "5*", "*-5", "5-*", "?", "?/5", "H", "H/5", "0~59", "!5", "+5", "1.5", "1e1", "0x5", "1_0"),
        *("five", "MON", "JAN", "L", "LW", "1L", "1#1", "1W", "%", "5;6", "5|6", "(5)", "{5}", "[1,2]", "'5'", '"5"'),
        *("٥", "５", "²", "①", "*/٥", "1-５", "1,٥", "∗", "１-2", "५", "5\u0301", "5\u200b", "5–10", "−5"),
        *("9" * 40, "9" * 400),
    ],
    "hour": [*("24", "0-24", "-1", "23-0", "*/0", "8-", "8,,9", "9AM", "9:00", "noon", "?", "L", "٩", "０", "8..9")],
    "day of month": [
        *("0", "32", "0-5", "1-32", "31-1", "*/0", "1,,2", "?", "W", "15W", "1W", "WL", "L/2", "LW/2", "L-3", "L-1"),
        *("5L", "LL", "1#2", "MON", "-L", "1-L", "L-5/2", "ＬＷ", "١", "1st"),
    ],
    "month": [
        *("0", "13", "0-5", "1-13", "12-1", "DEC-JAN", "JUL-", "-JUL", "JANUARY", "JA", "JANN", "MON", "L", "?"),
        *("*/0", "JAN,,MAR", "JAN,", "JAN#1", "JANL", "ſep", "jUſ", "ОCT", "１"),
    ],
    "day of week": [
        *("8", "9", "0-8", "6-0", "7-1", "5-1", "FRI-SUN", "SAT-SUN", "FRI-MON", "MON-", "-MON", "MON--FRI"),
        *("MON-WED-FRI", "MONDAY", "MO", "JAN", "*/0", "MON,,FRI", ",MON", "MON,", "?", "L", "LW", "L5", "MONL", "8L"),
        *("5L/2", "5LL", "5L5", "5#6", "5#0", "MON#0", "MON#6", "MON#", "#2", "MON#-1", "MON#x", "MON#2#3", "MON#2/2"),
        *(
            "MON-FRI#2",
            "*#2",
            "8#1",
            "MON#L",
            "5W",
            "frı",
            "FRİ",
            "ſun",
            "MОN",
            "٥",
            "٥L",
            "²L",
            "1#٢",
            "MON#２",
        ),
    ],
}
FIELDS = list(BOUNDS)


def with_field(field: str, text: str) -> str:
    fields = ["0"] * 3 + ["1", "1", "1"] if field == "second" else ["0", "0", "*", "*", "*"]
    at = FIELDS.index(field) - (6 - len(fields))
    return " ".join([*fields[:at], text, *fields[at + 1 :]])


WRONG = [(field, text, with_field(field, text)) for field, texts in WRONG_FIELDS.items() for text in texts]

# Six fields: the seconds come first and the others move along.
WRONG_OF_SIX = [
    ("minute", "60", "0 60 * * * *"),
    ("hour", "24", "0 0 24 * * *"),
    ("day of month", "32", "0 0 0 32 * *"),
    ("month", "13", "0 0 0 * 13 *"),
    ("day of week", "8", "0 0 0 * * 8"),
    ("second", "*/0", "*/0 * * * * *"),
]

# The whole expression is wrong.
WRONG_EXPRESSIONS = {
    "empty": "",
    "a space": " ",
    "only white space": " \t ",
    "one field": "*",
    "two fields": "0 9",
    "three fields": "0 9 *",
    "four fields": "0 9 * *",
    "seven fields": "0 0 9 * * * 2025",
    "eight fields": "* * * * * * * *",
    "five fields as one": "0,9,*,*,*",
    "words": "every day",
    "a nickname that cron runs at boot": "@reboot",
    "an interval": "@every 5m",
    "a longer interval": "@every 1h30m",
    "an unknown nickname": "@fortnightly",
    "a nickname of a second": "@secondly",
    "a part of a nickname": "@dail",
    "a nickname with a tail": "@dailyx",
    "a bare at sign": "@",
    "a nickname apart from its sign": "@ daily",
    "two nicknames": "@daily @hourly",
    "a nickname with fields": "@daily * * * *",
    "fields with a nickname": "0 0 * * * @daily x",
    "a nickname with a dotted capital": "@DAİLY",
    "a nickname with a dotless letter": "@daıly",
    "a nickname with a long s": "@yearlyſ",
    "a crontab line": "0 9 * * * root /bin/true",
    "a crontab setting": "CRON_TZ=UTC 0 9 * * * *",
    "a comment": "# 0 9 * * * *",
    "a line between fields": "0 9\n* * *",
    "two lines": "0 9 * * *\n0 10 * * *",
    "a carriage return between fields": "0 9\r* * *",
    "a form feed between fields": "0 9\f* * *",
    "a vertical tab between fields": "0 9\v* * *",
    "a file separator between fields": "0 9\x1c* * *",
    "ten thousand fields": "0 " * 5000,
    "ten thousand letters": "a" * 10_000,
    "ten thousand stars": "*" * 10_000,
    "ten thousand characters of a list": "1," * 5000 + "1 * * * *",
    "ten thousand spaces": " " * 10_000,
}

# Signs that no terminal should be sent, and white space that only looks like some.
WRONG_SIGNS = {
    "a null": "5\x00 9 * * *",
    "a null in front": "\x005 9 * * *",
    "a null in the weekday": "0 9 * * 1\x00",
    "an escape": "5\x1b 9 * * *",
    "a colour": "\x1b[31m5 9 * * *",
    "an escape in the month": "0 9 * JAN\x1b *",
    "a delete": "5\x7f 9 * * *",
    "a backspace": "*\x08 9 * * *",
    "a bell": "0 9 L\x07 * *",
    "a next line": "0 9 * *\x85*",
    "a next line in front": "\x85 0 9 * * *",
    "a no-break space at the end": "0 9 * * *\u00a0",
    "a no-break space between fields": "0\u00a09 * * *",
    "an ideographic space between fields": "0 9\u3000* * *",
    "a line separator between fields": "0 9\u2028* * *",
    "a byte order mark": "\ufeff0 9 * * *",
    "a zero-width space": "\u200b0 9 * * *",
    "a right-to-left mark": "\u200f0 9 * * *",
    "a lone surrogate": "\ud800 9 * * *",
}

# Every field is right, and still no such date ever comes.
NEVER = {
    "30 February": "0 0 30 2 *",
    "31 February": "0 0 31 2 *",
    "30 and 31 February": "0 0 30,31 FEB *",
    "30 to 31 February": "0 0 30-31 2 *",
    "31 April": "0 0 31 4 *",
    "31 of every short month": "0 0 31 2,4,6,9,11 *",
    "31 of June, with seconds": "30 0 0 31 JUN *",
    "31 November at a gap": "30 2 31 11 *",
    "30 February on any second day of the week": "0 0 30 2 */2",
    "days 1 and 31, and the fifth Monday, in February": "0 0 */30 2 MON#5",
    "days 1 and 31, and the second Friday": "0 0 */30 * FRI#2",
    "days 1 and 21, and the second Monday": "0 0 */20 * 1#2",
    "days 1, 11 and 21, and the last Sunday, in February": "0 0 */10 2 0L",
    "the last of a month, and every fifth step, of the fourth Sundays": "0 0 */31 * SUN#4",
}

NOT_TEXT = {
    "nothing": None,
    "a number": 5,
    "a fraction": 5.0,
    "truth": True,
    "bytes": b"0 9 * * *",
    "a list": ["0", "9", "*", "*", "*"],
    "a tuple": ("0 9 * * *",),
    "an object": object(),
}


def refusal(expr: object) -> rota.InvalidRule:
    with pytest.raises(rota.InvalidRule) as caught:
        rota.Cron(expr)  # type: ignore[arg-type]
    assert isinstance(caught.value, rota.RotaError)
    assert isinstance(caught.value, ValueError)
    return caught.value


def escaped(text: str) -> str:
    return repr(text)[1:-1]


def says(error: rota.InvalidRule, text: str) -> bool:
    """Whether the message shows a text, plain or escaped, in any case; of long text, its beginning."""
    message = str(error).upper()
    forms = [form.upper() for form in (text, repr(text)[1:-1], ascii(text)[1:-1])]
    return any(form in message or (len(form) > 60 and form[:20] in message) for form in forms)


def assert_clear(error: rota.InvalidRule) -> None:
    """The message is one printable line that is short enough to read and says what is allowed."""
    message = str(error)
    assert message.isprintable()
    assert len(message) <= 500
    assert str(error.allowed)
    assert str(error.allowed) in message


def test_there_are_enough_refusals() -> None:
    everything = [expr for _, _, expr in WRONG + WRONG_OF_SIX]
    everything += [*WRONG_EXPRESSIONS.values(), *WRONG_SIGNS.values(), *NEVER.values()]
    assert len(set(everything)) == len(everything)
    assert len(everything) >= 250


@pytest.mark.parametrize(
    ("field", "text", "expr"),
    [pytest.param(*case, id=f"{case[0]}-{escaped(case[1])[:12]}") for case in WRONG + WRONG_OF_SIX],
)
def test_a_wrong_field_is_named(field: str, text: str, expr: str) -> None:
    error = refusal(expr)
    assert error.field == field
    assert field in str(error)
    assert says(error, text) or (error.value and says(error, str(error.value)))
    assert all(bound in str(error.allowed) for bound in BOUNDS[field])
    assert_clear(error)


@pytest.mark.parametrize("expr", WRONG_EXPRESSIONS.values(), ids=WRONG_EXPRESSIONS)
def test_a_wrong_expression_is_named(expr: str) -> None:
    error = refusal(expr)
    assert error.field == "expression"
    assert says(error, expr) or says(error, expr.strip())
    assert_clear(error)


@pytest.mark.parametrize("expr", WRONG_SIGNS.values(), ids=WRONG_SIGNS)
def test_a_strange_sign_is_refused(expr: str) -> None:
    error = refusal(expr)
    assert error.field in {"expression", *FIELDS}
    assert_clear(error)


@pytest.mark.parametrize("expr", NEVER.values(), ids=NEVER)
def test_a_date_that_never_comes_is_refused(expr: str) -> None:
    error = refusal(expr)
    assert error.field in {"day of month", "day of week"}
    assert any(part in str(error) for part in expr.split()[-3:] if part != "*")
    assert_clear(error)


@pytest.mark.parametrize("expr", NOT_TEXT.values(), ids=NOT_TEXT)
def test_only_text_is_an_expression(expr: object) -> None:
    error = refusal(expr)
    assert error.field == "expression"
    assert_clear(error)


# What else a schedule is made of.
@pytest.mark.parametrize(
    "zone",
    [
        "",
        " ",
        "Mars/Olympus",
        "Europe/Berlin ",
        "../etc/passwd",
        "/etc/localtime",
        "Europe",
        "+01:00",
        "UTC\x00",
        "Ｕ",
        None,
        5,
        "Europe/../Europe/Berlin",
        "x" * 10_000,
        b"UTC",
        "\ud800",
        "Europe/Berlin\n",
    ],
    ids=lambda zone: repr(zone)[:20],
)
def test_an_unknown_zone_is_refused(zone: object) -> None:
    with pytest.raises(rota.RotaError) as caught:
        rota.Cron("0 9 * * *", tz=zone)  # type: ignore[arg-type]
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) <= 500


@pytest.mark.parametrize("value", ["later", "", "AFTER ", "both", None, 5], ids=repr)
def test_an_unknown_gap_is_refused(value: object) -> None:
    with pytest.raises(rota.RotaError, match="skip"):
        rota.Cron("0 9 * * *", gap=value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", ["third", "", "BOTH ", "skip", None, 2], ids=repr)
def test_an_unknown_repeat_is_refused(value: object) -> None:
    with pytest.raises(rota.RotaError, match="second"):
        rota.Cron("0 9 * * *", repeat=value)  # type: ignore[arg-type]


BAD_MOMENTS = {
    "naive": datetime(2025, 1, 1),  # noqa: DTZ001
    "before 1970": datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    "after 2199": datetime(2200, 1, 1, tzinfo=UTC),
    "the first of all": datetime.min.replace(tzinfo=UTC),
    "the last of all": datetime.max.replace(tzinfo=UTC),
    "a date": MOMENT.date(),
    "text": "2025-01-01",
    "a number": 0,
    "nothing": None,
}


@pytest.mark.parametrize("asked", BAD_MOMENTS.values(), ids=BAD_MOMENTS)
def test_a_moment_that_is_none_is_refused(asked: datetime) -> None:
    rule = rota.Cron("0 9 * * *", tz="Europe/Berlin")
    for ask in (
        lambda: rule.next(asked),
        lambda: rule.previous(asked),
        lambda: rule.upcoming(asked, 1),
        lambda: list(rule.instants(asked, MOMENT)),
        lambda: rule.count(asked, MOMENT),
        lambda: rule.count(MOMENT, asked),
    ):
        with pytest.raises(rota.RotaError):
            ask()


# Odd to look at, and right: the text, and when it comes next after the start of 2024.
ACCEPTED = {
    "  0 9 * * *  ": "01-01T09:00",
    "\t0 9 * * *": "01-01T09:00",
    "0 9 * * *\n": "01-01T09:00",
    "0\t9\t*\t*\t*": "01-01T09:00",
    "0   9 \t * * *": "01-01T09:00",
    "00 09 * * *": "01-01T09:00",
    "000 009 * * *": "01-01T09:00",
    "0 9 01 07 *": "07-01T09:00",
    "0 9 * * tue": "01-02T09:00",
    "0 9 * * TuE": "01-02T09:00",
    "0 9 * fEb *": "02-01T09:00",
    "0 9 * jan-Mar *": "01-01T09:00",
    "0 9 * * sun-sat": "01-01T09:00",
    "0 9 * * SUN-1": "01-01T09:00",
    "0 9 * * 0-7": "01-01T09:00",
    "0 9 * * 7": "01-07T09:00",
    "0 9 * * 7-7": "01-07T09:00",
    "0 9 * * 6-7": "01-06T09:00",
    "0 9 * * */7": "01-07T09:00",
    "0 9 * * 00": "01-07T09:00",
    "*/60 * * * *": "01-01T01:00",
    "*/1 * * * *": "01-01T00:01",
    "0/1 * * * *": "01-01T00:01",
    "59/59 * * * *": "01-01T00:59",
    "5-5 * * * *": "01-01T00:05",
    "5-5/2 * * * *": "01-01T00:05",
    "5/10 * * * *": "01-01T00:05",
    "7,7,7 * * * *": "01-01T00:07",
    "9,8,7 * * * *": "01-01T00:07",
    "*,5 * * * *": "01-01T00:01",
    "5,* * * * *": "01-01T00:01",
    "0-59/7,* * * * *": "01-01T00:01",
    "0 22/3 * * *": "01-01T22:00",
    "0 0 l * *": "01-31T00:00",
    "0 0 lw * *": "01-31T00:00",
    "0 0 L,LW * *": "01-31T00:00",
    "0 0 30,L * *": "01-30T00:00",
    "0 0 L 2 *": "02-29T00:00",
    "0 0 * * 5l": "01-26T00:00",
    "0 0 * * 7L": "01-28T00:00",
    "0 0 * * 0L,7L": "01-28T00:00",
    "0 0 * * tue#5": "01-30T00:00",
    "0 0 * * 0#1,7#1": "01-07T00:00",
    "0 0 29 2 *": "02-29T00:00",
    "0 0 29 2 1": "02-05T00:00",
    "0 0 30 2 MON": "02-05T00:00",
    "0 0 31 4 1#1": "04-01T00:00",
    "0 0 31 2,3 *": "03-31T00:00",
    "0 0 31 4/3 *": "07-31T00:00",
    "0 0 */31 2 *": "02-01T00:00",
    "0 0 1-31 1-12 0-7": "01-02T00:00",
    "59 23 31 12 *": "12-31T23:59",
    "* * * * * *": "01-01T00:00:01",
    "59 59 23 31 12 *": "12-31T23:59:59",
    "*/60 5/60 * * * *": "01-01T00:05",
    "@HOURLY": "01-01T01:00",
    "@Daily": "01-02T00:00",
    " @midnight\t": "01-02T00:00",
    "@weekly": "01-07T00:00",
    "@monthly": "02-01T00:00",
}


@pytest.mark.parametrize(("expr", "expected"), ACCEPTED.items(), ids=[escaped(expr) for expr in ACCEPTED])
def test_odd_text_is_read_rightly(expr: str, expected: str) -> None:
    rule = rota.Cron(expr)
    assert rule.next(MOMENT) == datetime.fromisoformat(f"2024-{expected}+00:00")


def test_a_fifth_monday_in_february_is_worth_the_wait() -> None:
    assert rota.Cron("0 0 * 2 MON#5").next(MOMENT) == datetime(2044, 2, 29, tzinfo=UTC)


# No text breaks the parser: it is a schedule that comes, or a refusal.


def tries(examples: int) -> settings:
    """So many examples, however slow the machine."""
    slow = [HealthCheck.too_slow]
    return settings(max_examples=examples, deadline=None, print_blob=True, suppress_health_check=slow)


def assert_sound(expr: str) -> None:
    try:
        rule = rota.Cron(expr, tz="Europe/Berlin")
    except rota.RotaError:
        return
    assert expr.isascii()
    found = rule.next(MOMENT)
    assert found is not None
    assert found.astimezone(UTC) > MOMENT
    assert rule.words().isprintable()
    assert rota.Rule.parse(str(rule)) == rule


@tries(300)
@given(st.text(max_size=40))
def test_any_text(expr: str) -> None:
    assert_sound(expr)


@tries(600)
@given(st.lists(st.text("0123456789*/-,#LWMONJA?", min_size=1, max_size=6), min_size=4, max_size=7).map(" ".join))
def test_text_of_crons_own_letters(expr: str) -> None:
    assert_sound(expr)


VALID = [*ACCEPTED, "0 9 * * MON-FRI", "*/15 8-18 1,15 JAN-JUN/2 *", "0 0 L * 5L", "30 5 0 */2 * MON#2"]


@st.composite
def spoiled(draw: st.DrawFn) -> str:
    """A good expression with up to three characters changed, put in or taken out."""
    letters = list(draw(st.sampled_from(VALID)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, max(len(letters) - 1, 0)))
        put = draw(st.sampled_from(["", *string.printable]) | st.characters())
        letters[at : at + draw(st.integers(0, 1))] = [put]
    return "".join(letters)


@tries(800)
@given(spoiled())
def test_spoiled_text(expr: str) -> None:
    assert_sound(expr)
