"""The times that servers write into headers. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def http_date(text: str) -> datetime | None:
    """The UTC time of an HTTP date; None if it is none."""
    try:
        moment = parsedate_to_datetime(text)
        # "-0000" gives a time without a zone; HTTP dates are always GMT.
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
