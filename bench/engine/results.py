"""What was measured: medians, spread, ratios and targets; as a table and as JSON."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from bench.engine.plan import MEASURES, TARGETS, Target
from bench.engine.stores import StoreName


@dataclass
class Row:
    """One measure on one store, perhaps with so many schedules: the numbers of every contestant, one a round."""

    measure: str
    store: StoreName
    schedules: int | None = None
    taken: dict[str, list[float]] = field(default_factory=dict)

    def median(self, name: str) -> float:
        return statistics.median(self.taken[name])

    def ratio(self, peer: str | None = None) -> float | None:
        """How many times as good as a peer Rota is: as the best of them, if none is named."""
        peers = [name for name in self.taken if name != "rota" and peer in (None, name)]
        if "rota" not in self.taken or not peers:
            return None
        rota = self.median("rota")
        if MEASURES[self.measure].better == "more":
            return rota / max(map(self.median, peers))
        return min(map(self.median, peers)) / rota if rota else None


class Results:
    """All rows, in the order in which they came."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, StoreName, int | None], Row] = {}

    def add(self, measure: str, store: StoreName, name: str, value: float, schedules: int | None = None) -> None:
        key = (measure, store, schedules)
        row = self._rows.setdefault(key, Row(measure, store, schedules))
        row.taken.setdefault(name, []).append(value)

    def rows(self) -> list[Row]:
        """Return the rows, store by store, in the order of the measures."""
        order = list(MEASURES)
        return sorted(self._rows.values(), key=lambda row: (row.store, order.index(row.measure), row.schedules or 0))

    def verdicts(self, row: Row) -> Iterator[tuple[str, bool]]:
        """Yield what is wanted of a row, and whether it holds."""
        target = TARGETS.get((row.measure, row.store), Target())
        if "rota" not in row.taken:
            return
        if target.times is not None and (found := row.ratio(target.peer)) is not None:
            yield f"≥ {target.times:g}× {target.peer or 'best peer'} ({found:.2f}×)", found >= target.times
        if target.limit is not None:
            found = row.median("rota")
            yield f"≤ {target.limit:g} {MEASURES[row.measure].unit}", found <= target.limit
        smallest = self._smallest(row)
        if target.growth is not None and smallest is not None and smallest is not row:
            now, then = row.median("rota"), smallest.median("rota")
            shown = f"{now / then:.2f}×" if then else f"{now:.2f} of {then:.2f}"
            yield f"≤ {target.growth:g}× of {smallest.schedules:,} ({shown})", now <= target.growth * then

    def _smallest(self, row: Row) -> Row | None:
        alike = [
            each
            for each in self._rows.values()
            if (each.measure, each.store) == (row.measure, row.store) and each.schedules and "rota" in each.taken
        ]
        return min(alike, key=lambda each: each.schedules or 0, default=None)

    def table(self) -> str:
        """Say it all in one table, part by part: median, smallest and largest of the rounds."""
        parts = groupby(self.rows(), key=lambda row: (row.store, MEASURES[row.measure].part))
        return "\n".join(self._part(f"{store}: {part}", list(rows)) for (store, part), rows in parts)

    def _part(self, title: str, rows: list[Row]) -> str:
        names = sorted({name for row in rows for name in row.taken}, key=lambda name: (name != "rota", name))
        cells = [[title, "unit", *names, "rota / best peer", "target", "met"]]
        cells += [self._cells(row, names) for row in rows]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = []
        for line in cells:
            padded = [
                f"{cell:<{width}}" if number in (0, 1, len(line) - 2) else f"{cell:>{width}}"
                for number, (cell, width) in enumerate(zip(line, widths, strict=True))
            ]
            lines.append("  ".join(padded).rstrip())
        return "\n".join([*lines, ""])

    def _cells(self, row: Row, names: list[str]) -> list[str]:
        title = row.measure if row.schedules is None else f"{row.measure}, {row.schedules:,} schedules"
        ratio = row.ratio()
        verdicts = list(self.verdicts(row))
        return [
            title,
            MEASURES[row.measure].unit,
            *(_spread(row.taken[name]) if name in row.taken else "" for name in names),
            "" if ratio is None else f"{ratio:.2f}×",
            "; ".join(words for words, _ in verdicts),
            "" if not verdicts else "yes" if all(held for _, held in verdicts) else "NO",
        ]

    def json(self) -> list[dict[str, Any]]:
        return [
            {
                "measure": row.measure,
                "store": row.store,
                "schedules": row.schedules,
                "unit": MEASURES[row.measure].unit,
                "better": MEASURES[row.measure].better,
                "contestants": {
                    name: {"median": row.median(name), "min": min(taken), "max": max(taken), "rounds": taken}
                    for name, taken in row.taken.items()
                },
                "ratio_to_best_peer": row.ratio(),
                "targets": [{"target": words, "met": held} for words, held in self.verdicts(row)],
            }
            for row in self.rows()
        ]


def _spread(taken: list[float]) -> str:
    return f"{_number(statistics.median(taken))} ({_number(min(taken))}..{_number(max(taken))})"


def _number(value: float) -> str:
    """Show three digits that count."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
