"""The routers, one a noun; all of them are under `/api`."""

from fastapi import APIRouter

ROUTERS: list[APIRouter] = []
"""What the server includes, in the order of its documentation."""
