"""`/metrics` over HTTP: for whoever may look."""

import pytest
from tests.server.serving import by_header, client

import rota
from rota.server.metrics import router
from rota.server.web import web


@pytest.mark.parametrize(("caller", "status"), [("ann:read", 200), (None, 401)])
async def test_metrics_are_for_whoever_may_look(caller: str | None, status: int) -> None:
    async with rota.Rota("sqlite://", name="shop") as app:
        api = web(app, auth=by_header)
        api.include_router(router)
        async with client(api, caller) as someone:
            answer = await someone.get("/metrics")
    assert answer.status_code == status
    assert ("scheduled_jobs_total 0.0" in answer.text) == (status == 200)
