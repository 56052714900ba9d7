"""`rota tokens`: who may ask the server for what."""

from typing import Annotated, Any

import typer

from rota.cli.loading import AsJson, Where, on_store
from rota.cli.moments import iso
from rota.cli.output import as_json, lines, safe, table
from rota.store.tokens import TokenState
from rota.tokens import Role

tokens = typer.Typer(help="Say who may ask the server for what.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="NAME", help="Whose it is; history shows it.", show_default=False)]


@tokens.command("create")
def create_token(
    name: Name,
    role: Annotated[Role, typer.Option("--role", help="read: look; operate: also change; admin: all.")] = Role.READ,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="T", help="How long it is valid; for ever if left out."),
    ] = None,
    where: Where = None,
    json: AsJson = False,
) -> None:
    """Make a token and show it, once: the store keeps only its hash."""
    made = on_store(where, lambda app: app.tokens.create(name, role, expires=expires))
    if json:
        as_json({"token": made.token, **_record(made.state)})
        return
    lines(made.token)


@tokens.command("list")
def list_tokens(where: Where = None, json: AsJson = False) -> None:
    """Show the tokens, and when they were used last; not what they are."""
    found = on_store(where, lambda app: app.tokens.list())
    if json:
        as_json([_record(each) for each in found])
        return
    heads = ["name", "role", "created", "expires", "revoked", "used"]
    table(heads, [["" if cell is None else cell for cell in _record(each).values()] for each in found])


@tokens.command("revoke")
def revoke_token(
    name: Name,
    where: Where = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Let a token be valid no more, from now on and everywhere. Asks before."""
    if not yes:
        typer.confirm(safe(f"Revoke {name}? Who uses it is refused at once."), abort=True, err=True)
    on_store(where, lambda app: app.tokens.revoke(name))
    lines(f"{name} is revoked")


def _record(state: TokenState) -> dict[str, Any]:
    times = (state.created_at, state.expires_at, state.revoked_at, state.used_at)
    shown = [None if each is None else iso(each) for each in times]
    names = ("created_at", "expires_at", "revoked_at", "used_at")
    return {"name": state.name, "role": state.role, **dict(zip(names, shown, strict=True))}
