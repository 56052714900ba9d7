"""`/metrics`: what Prometheus asks for; for whoever may look."""

from fastapi import APIRouter, FastAPI, Response

from rota import metrics
from rota.app import Rota
from rota.server import problems
from rota.server.auth import Role, needs
from rota.server.door import Door, by_token
from rota.server.here import Here

router = APIRouter(tags=["metrics"], dependencies=[needs(Role.READ)])
"""It stands beside `/api`, not under it."""


@router.get(
    "/metrics",
    operation_id="get_metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
async def show_metrics(here: Here) -> Response:
    """Show all metrics in Prometheus' text format."""
    return Response(await metrics.render(here), media_type=metrics.CONTENT_TYPE)


def metrics_alone(app: Rota) -> FastAPI:
    """Return a server that has nothing but the metrics, behind the same door: for processes without HTTP."""
    api = FastAPI(title="Rota", docs_url=None, redoc_url=None, openapi_url=None)
    api.state.rota = app
    problems.install(api)
    api.include_router(router)
    api.add_middleware(Door, auth=by_token(app))
    return api
