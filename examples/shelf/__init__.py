"""An application for Rota: a shelf of books that are lent, and a reminder for whoever keeps one too long.

It brings a table, statements, tasks, a schedule, a limit, routes, a command, a page, a metric, and a word for the
doctor. A package that brings it says so in its pyproject.toml:

    [project.entry-points."rota.applications"]
    shelf = "examples.shelf:application"
"""

import rota
from examples.shelf.commands import commands
from examples.shelf.lending import doctor, metrics, remind, survey
from examples.shelf.routes import routes

application = rota.Application(
    "shelf",
    migrations="examples.shelf.migrations",
    statements=["examples.shelf.sql"],
    tasks=[remind, survey],
    schedules=[rota.Schedule("shelf-survey", survey.call(), rota.Cron("0 7 * * *"))],
    limits={"shelf": rota.Limit(at_once=1)},
    routes=routes,
    commands=commands,
    pages=[rota.Page("Shelf", "/shelf")],
    metrics=metrics,
    doctor=doctor,
)
