"""What the shelf does, on whichever store it is."""

from collections.abc import Iterable
from datetime import timedelta

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

import rota


@rota.task(name="shelf.remind", limits=["shelf"], retry=rota.Retry(attempts=5, first="1m"))
async def remind(book: int) -> str | None:
    """Remind whoever has a book. That it was done, and that the run has ended, is one transaction."""
    async with rota.current_app().database.transaction() as transaction:
        rows = await transaction.execute("shelf.remind", id=book)
        said = f"dear {rows[0]['lent_to']}, bring back {rows[0]['title']}" if rows else None
        await rota.current_run().complete(said, connection=transaction)
    return said


@rota.task(name="shelf.survey")
async def survey() -> int:
    """Count what is lent."""
    (row,) = await rota.current_app().database.fetch("shelf.count")
    return int(row["lent"])


async def lend(app: rota.Rota, book: int, person: str, length: timedelta) -> rota.Run[str | None] | None:
    """Lend a book, and store the run that reminds of it: both, or neither. None where the book is not there."""
    micros = length // timedelta(microseconds=1)
    async with app.database.transaction() as transaction:
        if not await transaction.execute("shelf.lend", id=book, person=person, micros=micros):
            return None
        return await app.enqueue(remind.call(book), delay=length, connection=transaction)


async def metrics(app: rota.Rota) -> Iterable[Metric]:
    """How many books there are."""
    (row,) = await app.database.fetch("shelf.count")
    family = GaugeMetricFamily("shelf_books", "Books by where they are.", labels=["state"])
    family.add_metric(["lent"], row["lent"])
    family.add_metric(["here"], row["books"] - row["lent"])
    return [family]


async def doctor(app: rota.Rota) -> Iterable[rota.Finding]:
    """What is wrong with the shelf."""
    (row,) = await app.database.fetch("shelf.count")
    return [rota.Finding(ok=False, what=f"books kept too long: {row['late']}", advice="ask")] if row["late"] else []
