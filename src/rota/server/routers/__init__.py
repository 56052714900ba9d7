"""The routers, one a noun; all of them are under `/api`."""

from fastapi import APIRouter

from rota.server.routers import (
    firings,
    limits,
    preview,
    queues,
    runs,
    schedule_orders,
    scheduler,
    schedules,
    task_types,
    workers,
)

ROUTERS: list[APIRouter] = [
    schedules.router,
    schedule_orders.router,
    preview.router,
    firings.router,
    runs.router,
    task_types.router,
    queues.router,
    workers.router,
    limits.router,
    scheduler.router,
]
"""What the server includes, in the order of its documentation."""
