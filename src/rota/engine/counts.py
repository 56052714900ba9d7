"""What an app's loops count in their process: plain numbers, cheap enough to be counted always."""

from bisect import bisect_left
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

from rota import settings
from rota.model import Outcome
from rota.store.runs import Claimed
from rota.store.schedule_rows import Fired

SHORT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""The bounds for what should take an instant, in seconds."""
LONG = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0)
"""The bounds for what may take its time."""
MOST_LABELS = 500
"""How many tasks, with their queues and outcomes, are told apart: names come from code, but code may make them up."""
OTHERS = "(others)"

K = TypeVar("K", bound=Hashable)


class Lengths:
    """How often something took how long."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, seconds)] += 1
        self.total += seconds

    def buckets(self) -> list[tuple[str, float]]:
        """Return how many were up to each bound, as Prometheus wants it."""
        found, sum_so_far = [], 0
        for bound, count in zip((*map(str, self.bounds), "+Inf"), self.counts, strict=True):
            sum_so_far += count
            found.append((bound, float(sum_so_far)))
        return found


class LengthsBy(dict[K, Lengths], Generic[K]):
    """Lengths by something, each made when it comes up first."""

    def __init__(self, bounds: tuple[float, ...]) -> None:
        super().__init__()
        self._bounds = bounds

    def __missing__(self, key: K) -> Lengths:
        found = self[key] = Lengths(self._bounds)
        return found


class Counts:
    """What the workers and schedulers of one app have done in this process."""

    def __init__(self) -> None:
        self.attempts: LengthsBy[tuple[str, str, Outcome]] = LengthsBy(LONG)
        """By task, queue and outcome: how long attempts took."""
        self.lateness: LengthsBy[str] = LengthsBy(LONG)
        """By queue: how long after they were due attempts began."""
        self.runs: dict[tuple[str, str], int] = {}
        """Runs of schedules that ended: by schedule and how."""
        self.durations: LengthsBy[str] = LengthsBy(LONG)
        """By schedule: how long their last attempts took."""
        self.started: dict[str, float] = {}
        """When a run of a schedule that has no metrics of its own began last: by what stands for it."""
        self.claims = Lengths(SHORT)
        self.settles = Lengths(SHORT)
        self.fired = 0
        self.fired_late = Lengths(LONG)
        self.skipped: dict[str, int] = {}
        self.lost: dict[str, int] = {}
        """Firings that another instance had made before: by schedule."""
        self.fenced = 0
        self.sweeps = 0
        self.swept = 0
        self.healed = 0
        self._labels: dict[str, str] = {}
        self._most = settings.metrics_schedules()

    def ended(self, run: Claimed, outcome: Outcome, seconds: float) -> None:
        """Count an attempt that ended here."""
        took = self.attempts.get((run.task, run.queue, outcome))
        if took is None:
            took = self.attempts[self._bounded(run, outcome)]
        took.add(seconds)
        late = self.lateness.get(run.queue)
        if late is None:
            late = self.lateness[run.queue if len(self.lateness) < MOST_LABELS else OTHERS]
        late.add(max(0, run.started_at - run.due) / 1_000_000)
        if run.schedule is not None and outcome in ("succeeded", "failed", "cancelled"):
            self._run_ended(self.label(run.schedule, run.task), run, outcome, seconds)

    def _bounded(self, run: Claimed, outcome: Outcome) -> tuple[str, str, Outcome]:
        return (run.task, run.queue, outcome) if len(self.attempts) < MOST_LABELS else (OTHERS, OTHERS, outcome)

    def _run_ended(self, label: str, run: Claimed, outcome: Outcome, seconds: float) -> None:
        self.runs[label, outcome] = self.runs.get((label, outcome), 0) + 1
        self.durations[label].add(seconds)
        if label != run.schedule:
            self.started[label] = max(self.started.get(label, 0.0), run.started_at / 1_000_000)

    def took_in(self, fired: Fired) -> None:
        """Count a round of firing."""
        self.fired += fired.runs
        for late in fired.lateness:
            self.fired_late.add(late / 1_000_000)
        _add(self.skipped, fired.reasons)
        _add(self.lost, {self.label(key, fired.decided[key]["task"]): n for key, n in fired.lost_by.items()})

    def label(self, schedule: str, task: str) -> str:
        """Return what stands for a schedule: the first ones for themselves, the others for their task.

        A key has no space in it, so neither is taken for the other.
        """
        if schedule in self._labels:
            return schedule
        if len(self._labels) < self._most:
            self._labels[schedule] = schedule
            return schedule
        return f"task {task}" if len(self.durations) < self._most + MOST_LABELS else f"task {OTHERS}"


def _add(counts: dict[str, int], more: Mapping[str, int]) -> None:
    for key, number in more.items():
        counts[key] = counts.get(key, 0) + number
