"""`/api/tokens`: who may ask, for admins."""

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Response
from fastapi import Path as InPath
from pydantic import BaseModel, ConfigDict, Field

from rota.server.auth import Role, needs
from rota.server.here import Here
from rota.server.problems import responses
from rota.tokens import LONGEST_NAME

router = APIRouter(prefix="/tokens", tags=["tokens"], dependencies=[needs(Role.ADMIN)])


class TokenOut(BaseModel):
    """A token: all but the token itself."""

    model_config = ConfigDict(from_attributes=True)

    name: str = Field(description="Whose it is; history shows it.", examples=["deploy"])
    role: Role
    created_at: datetime
    expires_at: datetime | None = Field(description="From when on it is not valid any more.")
    revoked_at: datetime | None = Field(description="Since when it is not valid any more.")
    used_at: datetime | None = Field(description="When it was used last, to the hour.")


class TokenMade(TokenOut):
    """A token that was made just now."""

    token: str = Field(description="The token. It is shown here and never again.")


class TokenIn(BaseModel):
    """A token to make."""

    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=LONGEST_NAME, description="A name that no other valid token has.", examples=["deploy"])
    role: Role = Role.READ
    expires: str | None = Field(default=None, max_length=50, description="How long it is valid.", examples=["90d"])


@router.get("", operation_id="list_tokens")
async def list_tokens(here: Here) -> list[TokenOut]:
    """List the tokens, also those that are revoked, the oldest first."""
    return [TokenOut.model_validate(each) for each in await here.tokens.list()]


@router.post("", status_code=201, operation_id="create_token")
async def create_token(new: TokenIn, here: Here) -> TokenMade:
    """Make a token. It is in this answer and nowhere else; who loses it revokes it and makes another."""
    made = await here.tokens.create(new.name, new.role, expires=new.expires)
    return TokenMade(token=made.token, **TokenOut.model_validate(made.state).model_dump())


@router.delete("/{name}", status_code=204, operation_id="revoke_token", responses=responses(404))
async def revoke_token(name: Annotated[str, InPath(max_length=LONGEST_NAME)], here: Here) -> Response:
    """Let a token be valid no more, from now on and everywhere."""
    await here.tokens.revoke(name)
    return Response(status_code=204)
