"""The API does what its description says, whatever is sent: no failure, and no answer that is not described."""

import os
from collections.abc import Iterator
from typing import Any

import httpx2
import hypothesis
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.server.live import Live, live

from rota.app import Rota

EXAMPLES = int(os.environ.get("ROTA_TEST_EXAMPLES", "18"))
"""How many requests to each operation; a longer search: ROTA_TEST_EXAMPLES=200."""
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def news(store: str) -> Rota:
    """An app with tasks and schedules that what is sent may hit."""
    app = Rota(store, name="news")

    @app.task(name="refresh")
    async def refresh(feed_id: int = 0, *more: str, **others: float) -> int:
        """Refresh a feed."""
        return feed_id

    return app


LIKELY = {
    "task": ["refresh"],
    "schedule": ["0", "a"],
    "key": ["0", "a", "b", "host:*", "queue:default"],
    "tag": ["0"],
    "prefix": ["0"],
    "run": [1, 2, 3, 999],
    "name": ["refresh"],
    "cron": ["*/5 * * * *", "0 9 * * MON", "30 2 29 2 *", "nonsense"],
    "tz": ["UTC", "Europe/Berlin", "Mars"],
    "arguments": [{}, {"feed_id": 42}, {"feed_id": "x"}, {"token": 1}],
    "rule": ["@daily", {"every": "15m", "since": "success"}, {"unit": "month", "on": ["last weekday"]}, {"any": ["x"]}],
    "exclude": [[], ["* * 24 12 *"], [{"every": 60, "since": "start"}]],
    **{name: [1.5, "5m", "soon"] for name in ("grace", "spread", "jitter", "timeout", "delay", "every", "gap")},
    **{name: ["2026-01-01T00:00:00Z", "2100-01-01T00:00:00Z"] for name in ("start", "until", "at", "after")},
    "end": ["2026-01-01T12:00:00Z", "2199-12-31T00:00:00Z"],
}
"""What is there, by the names of fields and parameters: so that what is sent gets further than the first question."""


DESCRIPTION = news("sqlite://").web().openapi()
DESCRIPTION["paths"] = {
    path: methods
    for path, methods in DESCRIPTION["paths"].items()
    if path != "/api/stream"  # which does not end
}
OPERATIONS = {each.ok().label: each.ok() for each in schemathesis.openapi.from_dict(DESCRIPTION).get_all_operations()}
PROBLEM = {"$ref": "#/components/schemas/Problem"}


def likely(found: Any, draw: Any) -> Any:
    """Return what is sent with values that are there, or may be, under these names."""
    if isinstance(found, list):
        return [likely(each, draw) for each in found]
    if not isinstance(found, dict):
        return found
    return {
        name: draw(st.sampled_from(LIKELY[name])) if name in LIKELY else likely(each, draw)
        for name, each in found.items()
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROTA_REQUESTS_PER_MINUTE", "0")
        with live(news(f"sqlite:///{tmp_path_factory.mktemp('store')}/rota.db")) as found:
            yield found


# What the description says


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DESCRIPTION["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def test_every_operation_has_a_name_of_its_own_words_and_a_place() -> None:
    names = [operation["operationId"] for *_, operation in operations()]
    assert len(names) == len(set(names))
    assert [name for (*_, each), name in zip(operations(), names, strict=True) if not each.get("description")] == []
    assert [name for (*_, each), name in zip(operations(), names, strict=True) if len(each["tags"]) != 1] == []


def test_every_operation_documents_what_it_answers_and_what_may_go_wrong() -> None:
    for _, path, operation in operations():
        if not path.startswith("/api/"):
            continue
        answers = operation["responses"]
        assert {"400", "401", "403", "413", "422", "429", "500", "503"} <= set(answers), path
        assert any(status.startswith("2") for status in answers), path
        for status, answer in answers.items():
            if status == "204":
                assert "content" not in answer
            elif status.startswith("2"):
                assert answer["content"]["application/json"]["schema"], path
            else:
                assert answer["content"]["application/problem+json"]["schema"] == PROBLEM, (path, status)
        one = "{" in path and not path.endswith(("/firings", "/revisions")) and "put" not in operation["operationId"]
        assert not one or "404" in answers, path


def test_every_list_is_paged_by_cursor_and_never_longer_than_200() -> None:
    for _, path, operation in operations():
        shape = operation["responses"].get("200", {}).get("content", {}).get("application/json", {}).get("schema", {})
        if "/Page_" in shape.get("$ref", ""):
            query = {each["name"]: each["schema"] for each in operation["parameters"] if each["in"] == "query"}
            assert (query["limit"]["minimum"], query["limit"]["maximum"]) == (1, 200), path
            assert "cursor" in query or path.endswith("/upcoming"), path


def unbounded(shape: Any, where: str) -> Iterator[str]:
    """Yield what may be as long or as large as somebody likes."""
    bounds = {
        "array": {"maxItems"},
        "integer": {"maximum"},
        "number": {"maximum"},
        "string": {"maxLength", "enum", "format", "const"},
    }
    kind = shape.get("type")
    if kind in bounds and not bounds[kind] & set(shape):
        yield f"{where}: {kind}"
    for name, each in shape.get("properties", {}).items():
        yield from unbounded(each, f"{where}.{name}")
    inner = [shape["items"]] if "items" in shape else []
    for each in (*inner, *shape.get("anyOf", ()), *shape.get("oneOf", ())):
        yield from unbounded(each, where)


def test_what_is_sent_has_bounds() -> None:
    shapes = DESCRIPTION["components"]["schemas"]
    sent = {name: each for name, each in shapes.items() if each.get("additionalProperties") is False}
    assert len(sent) > 20
    found = [line for name, each in sent.items() for line in unbounded(each, name)]
    for _, path, operation in operations():
        for each in operation.get("parameters", ()):
            if each["in"] != "header":
                found += unbounded(each["schema"], f"{path} {each['name']}")
    assert found == []


# What it answers


@pytest.fixture(scope="module")
def callers(server: Live) -> dict[str, dict[str, str]]:
    """What somebody brings who may do all, or only look, or nothing."""
    admin = {"Authorization": f"Bearer {server.token}"}
    made = httpx2.post(f"{server.url}/api/tokens", json={"name": "reader"}, headers=admin)
    return {"admin": admin, "read": {"Authorization": f"Bearer {made.json()['token']}"}, "nobody": {}}


@pytest.mark.parametrize("label", sorted(OPERATIONS))
def test_every_answer_is_described(label: str, server: Live, callers: dict[str, dict[str, str]]) -> None:
    search(label, server, callers["admin"], EXAMPLES)


@pytest.mark.parametrize("label", sorted(OPERATIONS))
@pytest.mark.parametrize("caller", ["read", "nobody"])
def test_who_may_not_gets_no_further_whatever_is_sent(
    label: str, caller: str, server: Live, callers: dict[str, dict[str, str]]
) -> None:
    method, path = label.split()
    answers = search(label, server, callers[caller], max(2, EXAMPLES // 6))
    if caller == "nobody" and path not in ("/healthz", "/readyz"):
        assert answers == {401}
    elif caller == "read" and method != "GET" and path != "/api/preview":
        assert answers <= {401, 403, 422}  # what is sent may be no token


def search(label: str, server: Live, caller: dict[str, str], examples: int) -> set[int]:
    """Ask for one thing in many ways; returns which statuses came back."""
    operation = OPERATIONS[label]
    takes = operation.body or operation.query or operation.path_parameters
    fits, wrong = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]
    admin = {"Authorization": f"Bearer {server.token}"}
    found: set[int] = set()
    for key in ("0", "a"):  # others may have removed them
        schedule = {"task": "refresh", "rule": "*/5 * * * *", "tags": ["0"], "overlap": "queue_all"}
        answer = httpx2.put(f"{server.url}/api/schedules/{key}", json=schedule, headers=admin)
        assert answer.status_code == 200

    @hypothesis.settings(max_examples=examples, database=None, suppress_health_check=list(hypothesis.HealthCheck))
    @hypothesis.given(data=st.data())
    def described(data: st.DataObject) -> None:
        case: Any = data.draw(st.one_of(fits, fits, wrong) if takes else fits)
        if data.draw(st.booleans()):
            for part in ("body", "query", "path_parameters"):
                setattr(case, part, likely(getattr(case, part), data.draw))
        if label.endswith("/tick") and isinstance(case.body, dict):
            case.body["timeout"] = 0.01  # what waits for a limit is waited for
        answer = case.call(base_url=server.url, headers=caller)
        found.add(answer.status_code)
        case.validate_response(answer, checks=CHECKS)

    described()
    return found
