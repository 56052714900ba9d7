"""A shop on Flask: an order and the mail that confirms it are stored together, or not at all.

flask --app examples.flask_app:create run
rota worker examples.flask_app:app
"""

import os

import flask
import sqlalchemy
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

import rota

STORE = os.environ.get("ROTA_STORE", "sqlite:///shop.db")
DRIVERS = {"sqlite": "sqlite+pysqlite", "postgresql": "postgresql+psycopg"}

app = rota.Rota(STORE, name="shop")
calls = rota.Blocking(app)  # threads share it, and a server may fork when it has imported this
kind, rest = STORE.split(":", 1)
engine = sqlalchemy.create_engine(f"{DRIVERS[kind]}:{rest}")


class Base(DeclarativeBase):
    """The shop's own tables, in the database of the store."""


class Order(Base):
    """What somebody wants."""

    __tablename__ = "shop_orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    item: Mapped[str]


@app.task(retry=rota.Retry(attempts=5, first="10s"))
def confirm(order: int) -> str:
    """Mail that an order has come in."""
    with Session(engine) as session:
        return f"mailed: {session.get_one(Order, order).item}"


def create() -> flask.Flask:
    """Make the web application, and the tables where they are missing."""
    Base.metadata.create_all(engine)
    calls.open()
    engine.dispose()  # the connections of a process are not for those that it forks
    web = flask.Flask(__name__)
    web.post("/orders")(order)
    web.get("/runs/<int:run>")(look)
    return web


def order() -> tuple[dict[str, object], int]:
    """Take an order."""
    item = flask.request.args["item"]
    with Session(engine) as session, session.begin():  # commits at the end, or rolls back
        new = Order(item=item)
        session.add(new)
        session.flush()
        run = calls.enqueue(confirm.call(new.id), connection=session)
        if item == "nothing":
            flask.abort(422)  # no order, and no mail
        return {"order": new.id, "run": run.id}, 201


def look(run: int) -> dict[str, object]:
    """Say what came of a run so far."""
    return {"state": calls.runs.get(run).state, "result": calls.runs.result(run)}
