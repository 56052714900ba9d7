"""`/api/stream`: server-sent events that say what has changed, so that whoever shows it looks again.

An event is a hint and no more: several changes are one event, and which object it was is not said. So there is nothing
to miss: whoever comes back looks once.
"""

import asyncio
import contextlib
import inspect
import json
from collections.abc import AsyncIterator

from fastapi import APIRouter, Request
from starlette.responses import StreamingResponse

from rota import clock
from rota.app import Rota
from rota.errors import RotaError
from rota.server.auth import Auth, Reader
from rota.server.problems import Refused, responses
from rota.store.reads import Reads

router = APIRouter(prefix="/stream", tags=["stream"])

MOST_LISTENERS = 100
REST_SECONDS = 0.5
"""How long after an event the next one comes at the earliest."""
HEARTBEAT_SECONDS = 15.0
PULSE_SECONDS = 1.0
"""How often to look for runs that have ended, while anybody listens: nobody tells of them."""
_TOPICS = {"ready": "runs", "waiting": "runs", "cancel": "runs", "schedules": "schedules", "tokens": "tokens"}
_ALL = frozenset(_TOPICS.values())


class Streams:
    """Who listens to the changes of a store, and what they have not been told yet."""

    def __init__(self, app: Rota, auth: Auth) -> None:
        self._app = app
        self._auth = auth
        self._listeners: set[_Listener] = set()
        self._closed = False
        self._looking: asyncio.Task[None] | None = None

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    def close(self) -> None:
        """End every stream: the server stops."""
        self._closed = True
        for each in self._listeners:
            each.woken.set()

    async def events(self, request: Request) -> AsyncIterator[str]:
        """Yield what is sent to one listener, for as long as the caller may listen."""
        listener = _Listener()
        self._add(listener)
        try:
            yield _event("hello", sorted(_ALL))
            while not self._closed:
                await listener.next()
                if not await self._may_listen(request):
                    return
                topics = listener.take()
                yield _event("change", sorted(topics)) if topics else ": still here\n\n"
        finally:
            self._remove(listener)

    def _add(self, listener: "_Listener") -> None:
        if self._looking is None:
            self._app.database.listen(self._heard)
            self._looking = asyncio.create_task(self._look())
        self._listeners.add(listener)

    def _remove(self, listener: "_Listener") -> None:
        self._listeners.discard(listener)
        if not self._listeners and self._looking is not None:
            self._app.database.unlisten(self._heard)
            self._looking.cancel()
            self._looking = None

    async def _look(self) -> None:
        """Notice runs that were made or have ended, by whatever process."""
        reads = Reads(self._app.database)
        seen = None
        while True:
            with contextlib.suppress(RotaError):
                found = await self._app.database.read(reads.pulse)
                if seen is not None and found != seen:
                    self._heard("ready")
                seen = found
            await asyncio.sleep(PULSE_SECONDS)

    async def _may_listen(self, request: Request) -> bool:
        """Ask the door again: a token may be revoked by now. While the store is away nobody can be."""
        if self._closed:
            return False
        try:
            found = self._auth(request)
            return (await found if inspect.isawaitable(found) else found) is not None
        except RotaError:
            return True

    def _heard(self, topic: str | None) -> None:
        topics = _ALL if topic is None else {_TOPICS[topic]} if topic in _TOPICS else frozenset()
        if topics:
            for each in self._listeners:
                each.hear(topics)


class _Listener:
    def __init__(self) -> None:
        self.woken = asyncio.Event()
        self._topics: set[str] = set()
        self._told = 0.0

    def hear(self, topics: frozenset[str] | set[str]) -> None:
        self._topics |= topics
        self.woken.set()

    def take(self) -> set[str]:
        found, self._topics = self._topics, set()
        self.woken.clear()
        self._told = clock.monotonic()
        return found

    async def next(self) -> None:
        """Wait until there is something to say, or for a heartbeat."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(HEARTBEAT_SECONDS):
                await self.woken.wait()
                self.woken.clear()
                if self._topics:
                    await asyncio.sleep(self._told + REST_SECONDS - clock.monotonic())


@router.get(
    "",
    operation_id="stream",
    response_class=StreamingResponse,
    responses={200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}, **responses(503)},
)
async def stream(request: Request, _: Reader) -> StreamingResponse:
    """Tell what changes, as server-sent events: `change` with the names of what did, such as `["runs"]`.

    Several changes are one event. A comment comes every 15 seconds. The stream ends when the token is revoked.
    """
    streams: Streams = request.app.state.streams
    if streams.listeners >= MOST_LISTENERS:
        raise Refused(503, f"there are {MOST_LISTENERS} listeners already; ask again", headers={"Retry-After": "10"})
    return StreamingResponse(streams.events(request), media_type="text/event-stream")


def _event(name: str, topics: list[str]) -> str:
    return f"event: {name}\ndata: {json.dumps(topics)}\n\n"
