"""The routers, one a noun; all of them are under `/api`."""

from fastapi import APIRouter

from rota.server.routers import preview, schedule_orders, schedules

ROUTERS: list[APIRouter] = [schedules.router, schedule_orders.router, preview.router]
"""What the server includes, in the order of its documentation."""
