"""What a webhook is sent: the body, and the headers by which its receiver knows that it comes from us. Pure.

The signature is HMAC-SHA256, with the webhook's secret as the key, over the timestamp as it stands in its header, a
full stop, and the body byte by byte; in hexadecimal digits, behind "v1=". The timestamp is part of it, so that an old
message cannot be sent again under a new time.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime
from typing import Any

import msgspec

from catchment.model import Event


def body_of(event: Event) -> bytes:
    return msgspec.json.encode(told(event))


def told(event: Event) -> dict[str, Any]:
    """An event as listeners see it."""
    return {
        "id": event.id,
        "event": event.name,
        "created_at": event.created_at.isoformat(),
        "data": event.data,
    }


def headers(event: Event, body: bytes, secret: str, attempt: int, now: datetime) -> dict[str, str]:
    timestamp = str(int(now.timestamp()))
    return {
        "Content-Type": "application/json",
        "X-Catchment-Event": event.name,
        "X-Catchment-Delivery": f"{event.id}-{attempt}",
        "X-Catchment-Timestamp": timestamp,
        "X-Catchment-Signature": f"v1={signature(secret, timestamp, body)}",
    }


def signature(secret: str, timestamp: str, body: bytes) -> str:
    return hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
