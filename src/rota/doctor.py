"""What is wrong, and what to do about it."""

from rota.answers import held_words
from rota.app import Rota
from rota.masking import masked_json
from rota.model import Finding, RunError
from rota.times.durations import duration_words
from rota.times.moments import micros

_LATE = 60_000_000
_SHOWN = 10
_LONGEST = 200
_LOOKED_AT = 1_000


async def examine(app: Rota) -> list[Finding]:
    """Look at the store, its workers, its queues and its schedules."""
    found = [Finding(ok=True, what="the store answers, and its tables are up to date")]
    workers = await app.workers()
    alive = [each for each in workers if each.left > 0]
    for each in [one for one in workers if one.left <= 0]:
        what = f"worker {each.id} has been silent for {duration_words(-each.left)}"
        found.append(_bad(what, "is it still there?"))
    worked = {queue for each in alive for queue in each.queues}
    for queue in await app.queues():
        if queue.state == "ready" and queue.queue not in worked:
            what = f"queue {queue.queue} has {_many(queue.number, 'ready run')} and no worker"
            found.append(_bad(what, f"start one: rota worker MODULE:APP --queue {queue.queue}"))
        elif queue.state == "ready" and queue.oldest > _LATE:
            late = duration_words(queue.oldest)
            what = f"queue {queue.queue} is behind: {_many(queue.number, 'ready run')}, the oldest for {late}"
            found.append(_bad(what, "add workers or slots"))
    found += await _schedules(app)
    found += await _applications(app)
    for trouble in await app.alerts.list(limit=_SHOWN):
        if trouble.kind in ("overdue", "silent"):  # the others are said above, as they are now
            advice = "see what came of it: rota why KEY" if trouble.kind == "overdue" else "start another in its place"
            found.append(_bad(f"{trouble.said}, since {trouble.began:%Y-%m-%d %H:%M} UTC", advice))
    if len(found) == 1:
        found.append(Finding(ok=True, what=f"workers alive: {len(alive)}; no queue is behind, no schedule is overdue"))
    return found


async def _schedules(app: Rota) -> list[Finding]:
    """Look at the schedules. A scheduler leaves no trace but what it fires: where much is overdue, none is there."""
    status = await app.schedules.status()
    found = []
    if status.paused is not None:
        found.append(
            _bad(f"all schedules are {held_words(status.paused)}", "let them go on: rota schedules resume --all")
        )
    elif status.overdue and status.oldest is not None:
        what = f"{_many(status.overdue, 'schedule')} overdue, the oldest for {duration_words(micros(status.oldest))}"
        found.append(_bad(what, "no scheduler fires them; start one: rota scheduler MODULE:APP"))
    found += await _parked(app, status.counts.get("parked", 0))
    found += await _paused_by_failures(app)
    for each in await app.schedules.failing(limit=_SHOWN):
        last = "" if each.last_error is None else f", the last time with {_first_line(each.last_error)}"
        what = f"schedule {each.key} failed {each.failures} times in a row{last}"
        found.append(_bad(what, f"see why: rota schedules firings {each.key}"))
    return found + _more(status.failing, "failing", "rota schedules list --state active")


async def _applications(app: Rota) -> list[Finding]:
    """Hear what the applications have to say; one that fails does not keep the others from it."""
    found: list[Finding] = []
    for each in app.applications:
        try:
            found += [] if each.doctor is None else await each.doctor(app)
        except Exception as error:  # noqa: BLE001 (it is said)
            said = _first_line(RunError(type(error).__name__, str(error)))
            found.append(_bad(f"application {each.name} cannot be examined: {said}", "see to its code"))
    return found


async def _parked(app: Rota, count: int) -> list[Finding]:
    found = []
    for each in await app.schedules.list(state="parked", limit=_SHOWN):
        note = "" if each.held is None or not each.held.note else f": {each.held.note}"
        what = f"schedule {each.key} is parked{note}, task {each.task} with {masked_json(each.args)}"
        advice = (
            f"bring the task back and restart a scheduler of its app; or name another and go on: "
            f"rota schedules change {each.key} --task NAME --args JSON --app MODULE:APP; "
            f"rota schedules resume {each.key}"
        )
        found.append(_bad(what, advice))
    return found + _more(count, "parked", "rota schedules list --state parked")


async def _paused_by_failures(app: Rota) -> list[Finding]:
    """Find what paused itself: nobody else says so, and it is not failing any more."""
    held = await app.schedules.list(state="paused", limit=_LOOKED_AT)
    own = [each for each in held if each.failures and each.held is not None and each.held.by == "rota"]
    found = []
    for each in own[:_SHOWN]:
        advice = f"see why: rota schedules firings {each.key}; then let it go on: rota schedules resume {each.key}"
        found.append(_bad(f"schedule {each.key} paused itself: it failed {each.failures} times in a row", advice))
    return found + _more(len(own), "paused by failures", "rota schedules list --state paused")


def _first_line(error: RunError) -> str:
    return f"{error.kind}: {error.message}".splitlines()[0][:_LONGEST]


def _bad(what: str, advice: str) -> Finding:
    return Finding(ok=False, what=what, advice=advice)


def _more(count: int, state: str, look: str) -> list[Finding]:
    return [_bad(f"{_many(count - _SHOWN, 'more schedule')} {state}", f"see them: {look}")] if count > _SHOWN else []


def _many(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
