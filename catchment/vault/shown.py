"""Credentials as they may be shown: how each one stands, and never its secret."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from catchment.store.credentials import Kept
from catchment.vault import life


def shown(kept: Kept, rules: life.LifeRules, now: datetime) -> dict[str, Any]:
    """As it stands at this moment, whether or not anybody has written that down yet."""
    one = life.passed(kept.credential, rules, now)
    return {
        "id": one.id,
        "platform": one.platform,
        "name": one.name,
        "state": str(one.state),
        "state_since": _iso(one.state_since),
        "state_until": _iso(one.state_until),
        "state_reason": one.state_reason,
        "is_usable": life.is_usable(one, now),
        "usable_from": _iso(life.usable_from(one, now)),
        "is_shared": one.is_shared,
        "is_from_environment": one.is_from_environment,
        "priority": one.priority,
        "daily_limit": one.daily_limit,
        "used_today": life.used_today(one, now),
        "use_count": one.use_count,
        "errors_in_a_row": one.errors_in_a_row,
        "errors_in_all": one.errors_in_all,
        "last_error": one.last_error,
        "last_error_at": _iso(one.last_error_at),
        "last_used_at": _iso(one.last_used_at),
        "expires_at": _iso(one.expires_at),
        "created_at": _iso(one.created_at),
        "key_id": kept.key_id,
        "source_count": kept.source_count,
    }


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()
