"""The schedules behind a server: the verbs of `app.schedules` that commands use, over HTTP."""

import builtins
import json
from dataclasses import fields, is_dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import quote

from rota.cli.asking import Asking, record
from rota.cli.output import bar
from rota.cli.schedule_orders import login
from rota.codec import encode
from rota.errors import Invalid, InvalidSchedule
from rota.model import RunError
from rota.schedule import Schedule, schedule_key
from rota.schedules import Upcoming, Why
from rota.store.schedule_reads import FiringState, HeldState, Revision, SchedulesStatus, ScheduleState
from rota.store.schedule_rows import Triggered
from rota.tasks import Call
from rota.times.backoff import Retry
from rota.times.durations import duration_text
from rota.times.moments import LATEST, micros, moment
from rota.times.policies import Adaptive, Length, OnFailure, Policies
from rota.times.rule import Rule

_PAGE = 200
_POLICIES = tuple(each.name for each in fields(Policies))
_OTHERS = ("rule", "queue", "priority", "limits", "timeout", "retry", "tags", "description")
_LENGTHS = ("grace", "spread", "jitter")
_TIMES = tuple(each.name for each in fields(ScheduleState) if each.type in (datetime, datetime | None))


class RemoteSchedules:
    """The schedules."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking

    # Change

    async def put(
        self, schedule: Schedule, *, create: bool = False, note: str | None = None, by: str | None = None
    ) -> ScheduleState:
        """Make a schedule, or with `create` only make it."""
        named_by_token(by)
        body = {name: _plain(getattr(schedule, name)) for name in _OTHERS}
        body |= {name: _plain(getattr(schedule.policies, name)) for name in _POLICIES}
        body |= _called(schedule.call) | {"note": note}
        if create:
            return _state(await self._asking.ask("POST", "schedules", body | {"key": schedule.key}))
        return _state(await self._asking.ask("PUT", _at(schedule.key), body))

    async def change(
        self,
        /,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
        version: int | None = None,
        last_success: datetime | None = None,
        **values: Any,
    ) -> int:
        """Change one schedule, or one after the other all with a tag or a prefix; returns how many are different now.

        Where a value is made from what a schedule has, that must still be so.
        """
        named_by_token(by)
        derived = any(callable(value) for value in values.values())
        count = 0
        chosen = [await self.get(key)] if key is not None else await self._all(tag, prefix)
        with bar(shown=len(chosen) > _PAGE) as progress:
            for known in progress.track(chosen, description="changing"):
                body = _changed(known, values) | {"note": note}
                if last_success is not None:
                    body["last_success"] = iso(last_success)
                wanted = version if version is not None else known.version if derived else None
                match = None if wanted is None else {"If-Match": f'"{wanted}"'}
                found = await self._asking.ask("PATCH", _at(known.key), body, headers=match)
                count += found["version"] != known.version
        return count

    async def pause(
        self,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
        until: datetime | None = None,
    ) -> int:
        """Keep them from firing; returns how many were not paused before."""
        named_by_token(by)
        body = {"note": note, "until": iso(until)}
        if key is None:
            return await self._many("pause", {"tag": tag, "prefix": prefix} | body)
        before = (await self.get(key)).state
        after = await self._asking.ask("POST", f"{_at(key)}/pause", body)
        return int(before != after["state"])

    async def resume(
        self,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
    ) -> int:
        """Let them go on; returns how many were held."""
        named_by_token(by)
        if key is None:
            return await self._many("resume", {"tag": tag, "prefix": prefix, "note": note})
        before = (await self.get(key)).state
        after = await self._asking.ask("POST", f"{_at(key)}/resume", {"note": note})
        return int(before != after["state"])

    async def remove(
        self,
        key: str | None = None,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        note: str | None = None,
        by: str | None = None,
    ) -> int:
        """Remove them; returns how many."""
        named_by_token(by)
        if key is None:
            return await self._many("remove", {"tag": tag, "prefix": prefix, "note": note})
        await self._asking.ask("DELETE", _at(key), query={"note": note})
        return 1

    async def spread(
        self,
        *,
        tag: str | None = None,
        prefix: str | None = None,
        window: Length = "1h",
        note: str | None = None,
        by: str | None = None,
    ) -> int:
        """Spread what runs next; returns how many."""
        named_by_token(by)
        return await self._many("spread", {"tag": tag, "prefix": prefix, "window": window, "note": note})

    async def trigger(self, key: str, *, note: str | None = None, by: str | None = None) -> Triggered:
        """Run a schedule now."""
        named_by_token(by)
        return record(Triggered, await self._asking.ask("POST", f"{_at(key)}/trigger", {"note": note}))

    async def backfill(
        self, key: str, start: datetime, end: datetime, *, note: str | None = None, by: str | None = None
    ) -> Triggered:
        """Run a past range once more."""
        named_by_token(by)
        body = {"start": iso(start), "end": iso(end), "note": note}
        return record(Triggered, await self._asking.ask("POST", f"{_at(key)}/backfill", body))

    async def _many(self, verb: str, body: dict[str, Any]) -> int:
        count: int = (await self._asking.ask("POST", f"schedules/{verb}", body))["count"]
        return count

    async def _all(self, tag: str | None, prefix: str | None) -> builtins.list[ScheduleState]:
        if (tag is None) == (prefix is None):
            raise InvalidSchedule("key", None, "say one of: a key, tag=…, prefix=…", "does not say which")
        return [_state(each) for each in await self._asking.items("schedules", tag=tag, prefix=prefix)]

    # Ask

    async def get(self, key: str) -> ScheduleState:
        """Return a schedule."""
        return _state(await self._asking.ask("GET", _at(key)))

    async def list(
        self,
        *,
        state: str | None = None,
        task: str | None = None,
        queue: str | None = None,
        app: str | None = None,
        tag: str | None = None,
        prefix: str | None = None,
        text: str | None = None,
        after: str = "",
        limit: int = 50,
    ) -> builtins.list[ScheduleState]:
        """Return schedules by key."""
        named = {"task": task, "queue": queue, "app": app, "tag": tag, "prefix": prefix, "text": text}
        found = await self._asking.items("schedules", limit, state=state, **named, after=after or None)
        return [_state(each) for each in found]

    async def status(self) -> SchedulesStatus:
        """Return how they are; not for how long the oldest has been due."""
        found = await self._asking.ask("GET", "scheduler/status")
        held = found["paused"]
        paused = None if held is None else record(HeldState, held)
        return record(SchedulesStatus, found, next_due=found["next_run"], oldest=None, paused=paused)

    async def upcoming(self, key: str | None = None, *, limit: int = 10) -> builtins.list[Upcoming]:
        """Return the next due instants."""
        path = "upcoming" if key is None else f"{_at(key)}/upcoming"
        return [
            record(Upcoming, each) for each in (await self._asking.ask("GET", path, query={"limit": limit}))["items"]
        ]

    async def revisions(self, key: str, *, before: int | None = None, limit: int = 50) -> builtins.list[Revision]:
        """Return the changes of a schedule."""
        found = await self._asking.items(f"{_at(key)}/revisions", limit, before=before)
        return [record(Revision, each) for each in found]

    async def firings(self, key: str, *, before: datetime | None = None, limit: int = 50) -> builtins.list[FiringState]:
        """Return due instants and what came of them, by due, newest first."""
        found: builtins.list[FiringState] = []
        end = before or moment(LATEST)
        while len(found) < limit:
            size = min(_PAGE, limit - len(found))
            query = {"before": iso(end), "limit": size}
            page = (await self._asking.ask("GET", f"{_at(key)}/firings", query=query))["items"]
            found += map(_firing, page)
            if len(page) < size:
                break
            end = found[-1].due
        return found

    async def why(self, key: str, *, at: datetime | None = None) -> Why:
        """Say what came of a due instant, and why."""
        found = await self._asking.ask("GET", f"{_at(key)}/why", query={"at": iso(at)})
        firing = None if found["firing"] is None else _firing(found["firing"])
        return record(Why, found, firing=firing)


def named_by_token(by: str | None) -> None:
    """Refuse another name than one's own: a server writes down that of the token."""
    if by is not None and by != login():
        raise Invalid("--by", by, "leave it out: the server writes down the name of the token", "cannot be said here")


def iso(found: datetime | None) -> str | None:
    """Write a moment that may be missing."""
    return None if found is None else found.isoformat()


def _at(key: str) -> str:
    return f"schedules/{quote(schedule_key(key), safe='')}"


# What is sent


def _plain(value: Any) -> Any:
    """Return a value of a schedule as the API takes it."""
    if isinstance(value, timedelta):
        return duration_text(micros(value))
    if isinstance(value, Rule):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value


def _called(call: Call[Any]) -> dict[str, Any]:
    return {"task": call.name, "arguments": json.loads(call.args_json)}


def _changed(known: ScheduleState, values: dict[str, Any]) -> dict[str, Any]:
    """Return a change of a schedule. Arguments that stay are not sent: here they may be masked."""
    made = {name: value(known) if callable(value) else value for name, value in values.items()}
    call: Call[Any] | None = made.pop("call", None)
    called = {} if call is None else _called(call)
    if call is not None and call.args_json == known.args:
        del called["arguments"]
    return {name: _plain(value) for name, value in made.items()} | called


# What is told


def _state(found: dict[str, Any]) -> ScheduleState:
    names = [each.name for each in fields(ScheduleState)]
    held, error, retry, timeout = found["held"], found["last_error"], found["retry"], found["timeout"]
    own: dict[str, Any] = {
        "args": encode(found["arguments"]),
        "rule": Rule.parse(found["rule_text"]),
        "policies": _policies(found),
        "retry": None if retry is None else Retry(**retry),
        "timeout": None if timeout is None else timedelta(seconds=timeout),
        "last_error": None if error is None else record(RunError, error),
        "held": None if held is None else record(HeldState, held),
        **{name: tuple(found[name]) for name in ("limits", "call_limits", "tags")},
        **{name: found[name] and datetime.fromisoformat(found[name]) for name in _TIMES},
    }
    return ScheduleState(**{name: own[name] if name in own else found[name] for name in names})


def _policies(found: dict[str, Any]) -> Policies:
    adaptive = found["adaptive"]
    parts: dict[str, Any] = {
        "exclude": [Rule.parse(each) for each in found["exclude_text"]],
        "on_failure": OnFailure(**found["on_failure"]),
        "adaptive": None if adaptive is None else Adaptive(**adaptive),
        **{name: None if found[name] is None else timedelta(seconds=found[name]) for name in _LENGTHS},
    }
    return Policies(**{name: parts[name] if name in parts else found[name] for name in _POLICIES})


def _firing(found: dict[str, Any]) -> FiringState:
    return record(FiringState, found, schedule=found["schedule_id"], trigger=found["trigger_type"])
