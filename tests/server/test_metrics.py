"""`/metrics` over HTTP: for whoever may look."""

import pytest
from tests.server.serving import by_header, client

import rota
from rota.server.web import web


@pytest.mark.parametrize(("caller", "status"), [("ann:read", 200), (None, 401)])
async def test_metrics_are_for_whoever_may_look(caller: str | None, status: int) -> None:
    async with rota.Rota("sqlite://", name="shop") as app, client(web(app, auth=by_header), caller) as someone:
        answer = await someone.get("/metrics")
    assert answer.status_code == status
    assert ("scheduled_jobs_total 0.0" in answer.text) == (status == 200)
