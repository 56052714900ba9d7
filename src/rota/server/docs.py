"""`/docs`: the description of the API as a page, with nothing from elsewhere.

The page holds no data and is for everybody; the description that it shows is for those who have a token.
"""

from importlib.resources import files

from fastapi import APIRouter
from starlette.responses import Response

router = APIRouter(include_in_schema=False)

_FILES = {
    "/docs": ("docs.html", "text/html"),
    "/docs/docs.css": ("docs.css", "text/css"),
    "/docs/docs.js": ("docs.js", "text/javascript"),
}
OPEN = frozenset(_FILES)
"""What everybody may ask for."""


def _route(path: str, name: str, kind: str) -> None:
    body = (files("rota.server") / "static" / name).read_bytes()

    async def give() -> Response:
        return Response(body, media_type=kind)

    router.add_api_route(path, give, methods=["GET", "HEAD"])


for _path, (_name, _kind) in _FILES.items():
    _route(_path, _name, _kind)
