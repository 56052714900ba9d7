"""The command line: one file a noun."""

import sys
from typing import Annotated

import typer

from rota.application import Application, load, named
from rota.cli import (
    alerts,
    copy,
    demo,
    imports,
    limits,
    rules,
    runs,
    scheduler,
    schedules,
    serve,
    simulate,
    store,
    streams,
    tokens,
    worker,
    workers,
)
from rota.errors import Invalid, RotaError
from rota.version import __version__

app = typer.Typer(
    name="rota",
    help="The durable engine for recurring and background work.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command("next")(rules.next_instants)
app.command("explain")(rules.explain)
app.command("simulate")(simulate.simulate_rule)
app.command("serve")(serve.serve)
app.command("demo")(demo.demo)
app.command("worker")(worker.worker)
app.command("scheduler")(scheduler.scheduler)
app.command("tick")(scheduler.tick)
app.command("upcoming")(schedules.upcoming)
app.command("why")(schedules.why)
app.command("migrate")(store.migrate)
app.command("copy")(copy.copy)
app.command("queues")(workers.queues)
app.command("alerts")(alerts.alerts)
app.command("doctor")(store.doctor)
app.add_typer(runs.runs, name="runs")
app.add_typer(schedules.schedules, name="schedules")
app.add_typer(limits.limits, name="limits")
app.add_typer(tokens.tokens, name="tokens")
app.add_typer(workers.workers, name="workers")
app.add_typer(imports.imports, name="import")


_debugging = [False]
"""Whether an error is shown with where it comes from."""


def _debug(wanted: bool) -> None:
    _debugging[0] = wanted


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"rota {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", callback=_debug, help="Show also where an error comes from.")
    ] = False,
) -> None: ...


def add_applications() -> None:
    """Add the commands of the applications that are installed; one that cannot be loaded is in nobody's way."""
    own = {each.name for each in app.registered_commands} | {each.name for each in app.registered_groups}
    for entry in named():
        try:
            _add_commands(load(entry), own)
        except RotaError as error:
            streams.complain(str(error))


def _add_commands(found: Application, own: set[str | None]) -> None:
    if found.commands is not None and found.name in own:
        raise Invalid("application", found.name, "let it have another name", "is a command of Rota's own")
    if found.commands is not None:
        app.add_typer(found.commands, name=found.name)


def main() -> None:
    """Run the command line. What Rota refuses is one line on standard error and exit code 1; with --debug a trace too.

    So is an output that cannot be written; one that nobody reads any more is exit code 1 without a word.
    """
    streams.complete()
    add_applications()
    try:
        app(prog_name="rota")
    except RotaError as error:
        if _debugging[0]:
            streams.trace()
        streams.complain(str(error))
        sys.exit(1)
    except OSError as error:
        if not streams.is_about_output(error):
            raise
        streams.discard_output()
        streams.complain(f"the output cannot be written: {error.strerror}")
        sys.exit(1)
