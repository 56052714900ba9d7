"""The routers, one a noun; all of them are under `/api`."""

from fastapi import APIRouter

from rota.server.routers import (
    alerts,
    doctor,
    firings,
    limits,
    preview,
    queues,
    runs,
    schedule_orders,
    scheduler,
    schedules,
    statistics,
    task_types,
    upcoming,
    workers,
)

ROUTERS: list[APIRouter] = [
    schedules.router,
    schedule_orders.router,
    upcoming.router,
    preview.router,
    firings.router,
    runs.router,
    task_types.router,
    queues.router,
    workers.router,
    limits.router,
    scheduler.router,
    statistics.router,
    alerts.router,
    doctor.router,
]
"""What the server includes, in the order of its documentation."""
