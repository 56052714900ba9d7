"""The routers, one a noun; all of them are under `/api`."""

from fastapi import APIRouter

from rota.server.routers import firings, preview, runs, schedule_orders, schedules

ROUTERS: list[APIRouter] = [schedules.router, schedule_orders.router, preview.router, firings.router, runs.router]
"""What the server includes, in the order of its documentation."""
