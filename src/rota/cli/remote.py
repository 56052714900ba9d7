"""A store behind a server: the verbs of `Rota` that commands use, over HTTP, with the same records.

Who does it is the token's name, not `by`.
"""

import builtins
import json
from datetime import datetime
from typing import Any, Self
from urllib.parse import quote

from rota.builtin import built_in
from rota.cli.asking import Asking, NotDone, record
from rota.cli.remote_schedules import RemoteSchedules, iso, named_by_token
from rota.codec import encode
from rota.kept import LogLine
from rota.limit import Limit
from rota.model import Attempt, Finding, Run, RunState
from rota.store.hours import Hour
from rota.store.limits import LimitState
from rota.store.queues import QueueSum
from rota.store.reads import Statistics
from rota.store.tokens import TokenState
from rota.store.troubles import Trouble
from rota.store.workers import WorkerRecord
from rota.tasks import Registry
from rota.times.durations import duration_text
from rota.times.moments import SECOND, micros
from rota.times.policies import Length
from rota.tokens import NewToken, Role


class Remote:
    """A server, to commands what a `Rota` is on a store."""

    def __init__(self, url: str) -> None:
        self._asking = Asking(url)
        self.tasks = Registry(built_in=built_in)
        self.schedules = RemoteSchedules(self._asking)
        self.runs = RemoteRuns(self._asking)
        self.limits = RemoteLimits(self._asking)
        self.tokens = RemoteTokens(self._asking)
        self.alerts = RemoteAlerts(self._asking)

    async def __aenter__(self) -> Self:
        await self._asking.__aenter__()
        return self

    async def __aexit__(self, _: object, error: object, __: object) -> None:
        await self._asking.__aexit__()
        if isinstance(error, KeyError):
            raise NotDone(f"what answers is no server of Rota's, or of another version: it says no {error}") from error

    async def pause(self, *, note: str | None = None, by: str | None = None) -> None:
        """Pause everything."""
        named_by_token(by)
        await self._asking.ask("POST", "scheduler/pause", {"note": note})

    async def resume(self, *, note: str | None = None, by: str | None = None) -> None:
        """Resume everything."""
        named_by_token(by)
        await self._asking.ask("POST", "scheduler/resume", {"note": note})

    async def workers(self) -> list[WorkerRecord]:
        """Return the workers."""
        found = await self._asking.items("workers")
        return [record(WorkerRecord, each, left=round(each["lease"] * SECOND)) for each in found]

    async def drain(self, worker: str) -> None:
        """Let a worker take no new work."""
        await self._asking.ask("POST", f"workers/{quote(worker, safe='')}/drain")

    async def queue_sums(self) -> list[QueueSum]:
        """Return the queues."""
        found = await self._asking.items("queues")
        return [record(QueueSum, each, oldest=round(each["oldest"] * SECOND)) for each in found]

    async def examine(self) -> list[Finding]:
        """Return what is wrong."""
        return [record(Finding, each) for each in await self._asking.ask("GET", "doctor")]


class RemoteRuns:
    """The runs."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def get(self, run: int) -> Run[Any]:
        """Return a run."""
        return _run(await self._detail(run))

    async def list(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        schedule: str | None = None,
        worker: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        text: str | None = None,
        before: int | None = None,
        limit: int = 50,
    ) -> builtins.list[Run[Any]]:
        """Return runs, newest first."""
        named = {"state": state, "task": task, "queue": queue, "schedule": schedule, "worker": worker, "text": text}
        times = {"since": iso(since), "until": iso(until)}
        return [_run(each) for each in await self._asking.items("runs", limit, **named, **times, before=before)]

    async def attempts(self, run: int) -> builtins.list[Attempt]:
        """Return its attempts."""
        return [record(Attempt, each) for each in (await self._detail(run))["attempts"]]

    async def log(self, run: int) -> builtins.list[LogLine]:
        """Return what it logged."""
        return [record(LogLine, each) for each in await self._asking.items(f"runs/{run}/log")]

    async def hours(
        self,
        start: datetime | None = None,
        end: datetime | None = None,
        *,
        task: str | None = None,
        queue: str | None = None,
    ) -> builtins.list[Hour]:
        """Return how many ended in each hour."""
        found = await self._asking.items("runs/hours", start=iso(start), end=iso(end), task=task, queue=queue)
        return [record(Hour, each) for each in found]

    async def statistics(
        self,
        window: Length = "1h",
        *,
        task: str | None = None,
        schedule: str | None = None,
        queue: str | None = None,
    ) -> Statistics:
        """Return how they went."""
        named = {"task": task, "schedule": schedule, "queue": queue}
        found = await self._asking.ask("GET", "statistics", query=named | {"window": window})
        counts = {"total": "total_checks", "successful": "successful_checks", "failed": "failed_checks"}
        return record(Statistics, found, **{name: found[told] for name, told in counts.items()})

    async def cancel(self, run: int, *, note: str = "cancelled") -> RunState:
        """Cancel a run; returns its state then."""
        return _run(await self._asking.ask("POST", f"runs/{run}/cancel", {"note": note})).state

    async def retry(self, run: int) -> Run[Any]:
        """Make an ended run ready again."""
        return _run(await self._asking.ask("POST", f"runs/{run}/retry"))

    async def _detail(self, run: int) -> dict[str, Any]:
        found: dict[str, Any] = await self._asking.ask("GET", f"runs/{run}")
        return found


class RemoteLimits:
    """The limits."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def put(self, key: str, limited: Limit) -> None:
        """Put a limit in force."""
        gap = duration_text(micros(limited.gap))
        body = {"at_once": limited.at_once, "gap": gap, "keys_at_once": limited.keys_at_once}
        await self._asking.ask("PUT", f"limits/{quote(key, safe='')}", body)

    async def list(self) -> builtins.list[LimitState]:
        """Return the limits."""
        return [_limit(each) for each in await self._asking.items("limits")]

    async def remove(self, key: str) -> None:
        """Take a limit out of force."""
        await self._asking.ask("DELETE", f"limits/{quote(key, safe='')}")

    async def waits_for(self, run: int) -> str | None:
        """Return what a due run waits for."""
        found: str | None = (await self._asking.ask("GET", f"runs/{run}"))["waits_for"]
        return found


class RemoteTokens:
    """The tokens."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def create(self, name: str, role: str = Role.READ, *, expires: Length | None = None) -> NewToken:
        """Make a token."""
        found = await self._asking.ask("POST", "tokens", {"name": name, "role": role, "expires": expires})
        return NewToken(found["token"], record(TokenState, found))

    async def list(self) -> builtins.list[TokenState]:
        """Return the tokens."""
        return [record(TokenState, each) for each in await self._asking.ask("GET", "tokens")]

    async def revoke(self, name: str) -> None:
        """Let a token be valid no more."""
        await self._asking.ask("DELETE", f"tokens/{quote(name, safe='')}")


class RemoteAlerts:
    """The troubles."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    async def list(self, *, over: bool = False, limit: int = 100) -> builtins.list[Trouble]:
        """Return the troubles."""
        return [record(Trouble, each) for each in await self._asking.items("alerts", limit, over=over)]


def _run(found: dict[str, Any]) -> Run[Any]:
    progress, result = found["progress"], found["result"]
    return record(
        Run,
        found,
        args=encode(found["arguments"]),
        cancel=found["cancelled"],
        result=None if result is None else json.dumps(result, separators=(",", ":"), ensure_ascii=False),
        progress=None if progress is None else (progress["share"], progress["note"]),
        schedule=found["schedule_id"],
        trigger=found["trigger_type"],
    )


def _limit(found: dict[str, Any]) -> LimitState:
    limit = Limit(found["at_once"], gap=found["gap"], keys_at_once=found["keys_at_once"])
    return LimitState(found["key"], limit, found["busy"], found["waiting"])
