"""/health: whether all is well, for whoever asks; and what is not, for those with a key."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response

from catchment.api.around import key_in
from catchment.api.door import Door, TheDoor
from catchment.api.shapes import Health
from catchment.api.standing import health
from catchment.errors import StoreError

router = APIRouter(tags=["health"])


@router.head("/health", include_in_schema=False)
@router.get(
    "/health",
    response_model=Health,
    response_model_exclude_unset=True,
    responses={503: {"model": Health, "description": "Not well: the database is away, or the scheduler is stuck."}},
)
def show_health(request: Request, response: Response, door: TheDoor) -> dict[str, Any]:
    """Answers {"ok"} to anyone; with a key also the database, the jobs with their times, and the last runs."""
    found = health(door)
    if not found["ok"]:
        response.status_code = 503
    return found if _has_key(request, door) else {"ok": found["ok"]}


def _has_key(request: Request, door: Door) -> bool:
    try:
        return door.keys.is_valid(key_in(request.headers))
    except StoreError:
        # Whoever asks while the database is away cannot be recognised; that all is not well, anyone may know.
        return False
