"""What is secret is not said: by its form, by its name, or because it is known."""

from typing import Any

import pytest

from rota import masking
from rota.masking import hide_environment, masked, masked_json, masked_value


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(masking, "_known", set())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("cannot reach postgresql://news:hunter2@db/news now", "cannot reach postgresql://news:…@db/news now"),
        ("amqp://guest:a@b:c@host:5672//", "amqp://guest:…@host:5672//"),
        ("redis://:hunter2@cache/0", "redis://:…@cache/0"),
        ("Authorization: Bearer abc.def-123", "Authorization: Bearer …"),
        ("GET /x?api_key=hunter2&page=2", "GET /x?api_key=…&page=2"),
        ("{'password': 'hunter2', 'user': 'news'}", "{'password': '…', 'user': 'news'}"),
        ("ROTA_TOKEN=hunter2 rota serve", "ROTA_TOKEN=… rota serve"),
        ("tokens: hunter2; private-key=hunter2", "tokens: …; private-key=…"),
        ("nothing to hide at https://example.org/feed", "nothing to hide at https://example.org/feed"),
    ],
)
def test_a_secret_is_masked_by_its_form(text: str, shown: str) -> None:
    assert masked(text) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"password": "x", "in": {"api_key": 1, "name": "n"}}, {"password": "…", "in": {"api_key": "…", "name": "n"}}),
        (["redis://:pw@h", 1, None, True], ["redis://:…@h", 1, None, True]),
        (ValueError("token=abc"), "token=…"),
        ({"token": None}, {"token": None}),
    ],
)
def test_a_secret_is_masked_by_its_name_wherever_it_is_inside(value: Any, shown: Any) -> None:
    assert masked_value(value) == shown


def test_what_the_settings_keep_secret_is_masked_wherever_it_comes_up() -> None:
    hide_environment(
        {
            "ROTA_TOKEN": "canary-token",
            "ROTA_NOTIFY": "json://example.org/canary-hook mailto:you@example.org",
            "ROTA_STORE": "postgresql://news:canary%40pass@db/news",
            "ROTA_KEEP": "14days",
            "ROTA_SECRET_SHOP": "canary-shop",
        }
    )
    said = "canary-shop canary-token json://example.org/canary-hook canary@pass canary%40pass 14days"
    assert masked(said) == "… … … … … 14days"


@pytest.mark.parametrize(
    "text", ["a-" * 100_000, "a." * 100_000, "://" * 70_000, "token " * 30_000, "bearer " * 30_000]
)
def test_no_text_is_long_to_look_through(text: str) -> None:
    """Were it looked through once for each of its words, this would take hours."""
    assert masked(text) == text or "bearer" in text


def test_in_json_something_else_stands_for_the_text_of_a_secret() -> None:
    plain = '{"url":"x","passphrase":"canary","of":{"cookies":["canary",1]},"token":""}'
    assert masked_json(plain) == '{"url": "x", "passphrase": "***", "of": {"cookies": ["***", 1]}, "token": ""}'
    assert masked_json('{"url":"x"}') == '{"url":"x"}'
