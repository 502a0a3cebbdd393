"""The pages' own paths. What they show is asked of the same verbs as everywhere; what they look like is in `pages`."""

from fastapi import APIRouter

from catchment.api.browsing import adding, credentials, entering, live, reading, records, settings, sources, watches
from catchment.api.browsing.readers import failure_page, is_for_a_person

__all__ = ["PARTS", "failure_page", "is_for_a_person", "router"]

PARTS = (entering, reading, adding, sources, records, live, credentials, watches, settings)

router = APIRouter(include_in_schema=False)
for _part in PARTS:
    router.include_router(_part.router)
