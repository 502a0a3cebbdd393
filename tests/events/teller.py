"""An app that emits events; as a program, one delivery run of another process of the same deployment."""

from __future__ import annotations

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

from catchment.clock import micros
from catchment.events import webhooks
from catchment.store.database import Transaction
from catchment.store.delivery.events import tell
from tests.hostile import Seen
from tests.town import TownApp

SECRET = "a secret of sixteen or more"
MASTER = "a master key for tests"


class Teller(TownApp):
    def __init__(self, home: Path, database_url: str, **settings: Any) -> None:
        super().__init__(home, database_url, **{"master_key": MASTER, "is_private_allowed": True, **settings})

    @property
    def store(self) -> Any:
        return self.app.store

    def webhook(self, url: str, name: str = "mine", **more: Any) -> int:
        now = self.clock.now()
        return webhooks.add(self.store.webhooks, self.app.cipher, name, url, now, secret=SECRET, **more)[0]

    def happen(self, *what: str, event: str = "items.collected") -> None:
        """So many events, each in a transaction of its own."""
        for name in what:

            def action(tx: Transaction, name: str = name) -> None:
                tell(tx, event, {"what": name}, micros(self.clock.now()))

            self.store.database.write(action)

    def round(self, after: timedelta = timedelta(0), **more: Any) -> None:
        self.clock.advance(after.total_seconds())
        self.app.deliverer.deliver_pending(**more)

    def state(self, name: str = "webhook mine") -> dict[str, Any]:
        (found,) = [delivery for delivery in self.store.deliveries.page() if delivery.listener == name]
        return found

    def alerts(self) -> list[str]:
        return [alert.message for alert in self.store.alerts.open()]

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        return [(event.name, event.data) for event in self.store.outbox.after(0, 1000)[0]]


def heard(seen: list[Seen]) -> list[str]:
    """What was told, in the order in which it arrived."""
    return [json.loads(request.body)["data"]["what"] for request in seen]


if __name__ == "__main__":
    Teller(Path(sys.argv[2]), sys.argv[1]).round()
