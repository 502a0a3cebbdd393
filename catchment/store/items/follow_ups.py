"""Queue of follow-ups: pending requests about items, queued with the page that showed a change and removed with the
answer."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from catchment.clock import micros
from catchment.decoders import json_decoder
from catchment.model import FollowUp, Request, Source
from catchment.store.database import StorePart, Transaction


class FollowUpQueue(StorePart):
    def of_source(self, source_id: int, limit: int) -> list[FollowUp]:
        """Returns the follow-ups of a source, the longest waiting first."""
        rows = self._db.read(
            lambda tx: tx.all(
                """
                SELECT f.item_id, i.external_id, f.requests, f.asked_count
                  FROM follow_ups f JOIN items i ON i.id = f.item_id
                 WHERE f.source_id = ? ORDER BY f.waiting_since, f.item_id LIMIT ?
                """,
                source_id,
                limit,
            )
        )
        return [FollowUp(row[0], row[1], _requests_from(row[2]), row[3]) for row in rows]

    def count(self, source_id: int) -> int:
        """Returns how many items have pending follow-ups."""
        row = self._db.read(lambda tx: tx.one("SELECT count(*) FROM follow_ups WHERE source_id = ?", source_id))
        return int(row[0]) if row else 0


def queue_follow_ups(
    tx: Transaction, source: Source, requests_by_item: Sequence[tuple[int, Sequence[Request]]], now: int
) -> None:
    """Queue follow-ups about these items. New requests replace the old ones, which they include."""
    tx.insert(
        "follow_ups",
        ("item_id", "source_id", "waiting_since", "asked_count", "requests"),
        [(item_id, source.id, now, 0, _requests_text(requests)) for item_id, requests in requests_by_item],
        "ON CONFLICT (item_id, source_id) DO UPDATE SET asked_count = 0, requests = excluded.requests",
    )


def update_follow_ups(tx: Transaction, source: Source, follow_ups: Sequence[FollowUp], at: datetime) -> None:
    """Update the follow-ups after an answer: remaining requests go to the end of the queue."""
    tx.many(
        "DELETE FROM follow_ups WHERE item_id = ? AND source_id = ?",
        [(follow_up.item_id, source.id) for follow_up in follow_ups if not follow_up.requests],
    )
    tx.many(
        "UPDATE follow_ups SET waiting_since = ?, asked_count = ?, requests = ? WHERE item_id = ? AND source_id = ?",
        [
            (micros(at), follow_up.asked_count, _requests_text(follow_up.requests), follow_up.item_id, source.id)
            for follow_up in follow_ups
            if follow_up.requests
        ],
    )


def _requests_text(requests: Sequence[Request]) -> str:
    return msgspec.json.encode(requests).decode()


def _requests_from(text: str) -> tuple[Request, ...]:
    return json_decoder(tuple[Request, ...]).decode(text)
