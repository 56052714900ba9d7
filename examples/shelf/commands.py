"""The shelf on the command line: `rota shelf add`, `rota shelf list`."""

import asyncio
from typing import Annotated, Any

import typer

import rota

commands = typer.Typer(help="Books, and who has them.", no_args_is_help=True)

Store = Annotated[str | None, typer.Option("--store", metavar="URL", help="Where the state is; else ROTA_STORE.")]


@commands.command("add")
def add(title: str, store: Store = None) -> None:
    """Put a book on the shelf."""
    asyncio.run(_execute(store, "shelf.add", title=title))


@commands.command("list")
def list_books(store: Store = None) -> None:
    """List the books."""
    for row in asyncio.run(_execute(store, "shelf.list")):
        typer.echo(f"{row['id']}  {row['title']!r}  {row['lent_to'] or ''}".rstrip())


async def _execute(store: str | None, name: str, **values: Any) -> Any:
    from examples.shelf import application  # noqa: PLC0415 (it names these commands itself)

    app = rota.Rota(store)
    app.include(application)
    async with app:
        return await app.database.execute(name, **values)
