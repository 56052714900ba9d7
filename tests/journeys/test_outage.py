"""After an outage the policies are obeyed, and what is on time does not wait behind what is late."""

from tests.journeys.outage import Outage
from tests.journeys.processes import Crew

from rota.app import Rota

COUNT = 2_000
"""`scripts/soak` does it with ten thousand."""


async def test_thousands_that_missed_two_hours_get_what_their_policies_say_and_starve_nobody(
    crew: Crew, client: Rota
) -> None:
    figures = await Outage(crew, client, COUNT).run()
    print(figures)  # noqa: T201 (pytest shows it with a failure)
    assert figures.wrong == []
    assert figures.accepting, figures
