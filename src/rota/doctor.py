"""What is wrong, and what to do about it."""

from dataclasses import dataclass

from rota.app import Rota
from rota.times.durations import duration_words
from rota.times.moments import micros

_LATE = 60_000_000
_SHOWN = 10


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    ok: bool
    what: str
    advice: str = ""

    def line(self) -> str:
        """Say it, and what to do about it."""
        return f"{self.what}: {self.advice}" if self.advice else self.what


async def examine(app: Rota) -> list[Finding]:
    """Look at the store, its workers, its queues and its schedules."""
    found = [Finding(ok=True, what="the store answers, and its tables are up to date")]
    workers = await app.workers()
    alive = [each for each in workers if each.left > 0]
    for each in workers:
        if each.left <= 0:
            what = f"worker {each.id} has been silent for {duration_words(-each.left)}"
            found.append(Finding(ok=False, what=what, advice="is it still there?"))
    worked = {queue for each in alive for queue in each.queues}
    for queue in await app.queues():
        if queue.state == "ready" and queue.queue not in worked:
            what = f"{queue.number} runs of queue {queue.queue} wait for a worker"
            found.append(
                Finding(ok=False, what=what, advice=f"start one: rota worker MODULE:APP --queue {queue.queue}")
            )
        elif queue.state == "ready" and queue.oldest > _LATE:
            late = duration_words(queue.oldest)
            what = f"queue {queue.queue} is behind: {queue.number} runs are ready, the oldest for {late}"
            found.append(Finding(ok=False, what=what, advice="add workers or slots"))
    found += await _schedules(app)
    if len(found) == 1:
        found.append(Finding(ok=True, what=f"workers alive: {len(alive)}; no queue is behind"))
    return found


async def _schedules(app: Rota) -> list[Finding]:
    """Look at the schedules."""
    status = await app.schedules.status()
    found = []
    if status.paused is not None:
        who = "" if status.paused.by is None else f" by {status.paused.by}"
        what = f"all schedules are paused{who}"
        found.append(Finding(ok=False, what=what, advice="let them go on: rota schedules resume --all"))
    elif status.overdue and status.oldest is not None:
        late = duration_words(micros(status.oldest))
        what = f"{status.overdue} schedules are due and not fired, the oldest for {late}"
        found.append(Finding(ok=False, what=what, advice="start a scheduler: rota scheduler MODULE:APP"))
    for each in await app.schedules.list(state="parked", limit=_SHOWN):
        note = "" if each.held is None or not each.held.note else f": {each.held.note}"
        advice = f"bring its task back, or repair it: rota schedules change {each.key}, then resume"
        found.append(Finding(ok=False, what=f"schedule {each.key} is parked{note}", advice=advice))
    for each in await app.schedules.failing(limit=_SHOWN):
        what = f"schedule {each.key} failed {each.failures} times in a row"
        found.append(Finding(ok=False, what=what, advice=f"see why: rota schedules firings {each.key}"))
    return found
