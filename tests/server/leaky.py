"""An app whose tasks and routes say what they should not, for tests that look for it everywhere."""

import logging
import os

from fastapi import APIRouter

import rota

app = rota.Rota(name="leaky")
routes = APIRouter(prefix="/leaky")


def words() -> str:
    """All that the environment keeps secret, as somebody would say it without thinking."""
    names = ("ROTA_STORE", "ROTA_TOKEN", "ROTA_NOTIFY", "ROTA_SECRET_SHOP", "ROTA_WEBHOOK_SECRET")
    return " ".join(os.environ[name] for name in names)


@app.task(name="leaky.fail")
async def fail(password: str, headers: dict[str, str]) -> None:
    """Fail, with all that is secret in the log and in the error."""
    logging.getLogger("leaky").warning("calling with %s\n\x1b[2Jforged", words(), extra={"password": password})
    raise ValueError(f"no answer to password={password} Authorization: {headers['Authorization']} {words()}")


@routes.get("/boom")
async def boom() -> None:
    """Fail in the middle of a statement."""
    raise RuntimeError(f"SELECT canary FROM rota_tokens -- {words()} in {__file__}")


app.include(rota.Application("leaky", routes=routes))
