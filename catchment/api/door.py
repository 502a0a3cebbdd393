"""What every handler finds behind the door: the shop, and who may come in."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, cast

from fastapi import Depends, Request

from catchment.api.keys import Keys, Sessions, signing_key
from catchment.api.pulse import Pulse
from catchment.health.totals import Totals
from catchment.shop import Shop


@dataclass(frozen=True)
class Door:
    shop: Shop
    keys: Keys
    sessions: Sessions
    opened_at: datetime
    collects: bool
    """Whether this process runs the jobs itself, and so answers for them."""
    totals: Totals
    """What this process has seen happen since it began."""
    demo_rate: float | None = None
    """How many times as fast time runs in a demonstration; None: this is none."""
    pulse: Pulse = field(default_factory=Pulse)


def open_door(shop: Shop, *, collects: bool, demo_rate: float | None = None) -> Door:
    now = shop.clock.now()
    return Door(
        shop,
        Keys(shop.store.api_keys, shop.settings.api_key),
        Sessions(signing_key(shop.settings.home)),
        now,
        collects,
        Totals(shop.store.metrics, shop.hot.counts, now),
        demo_rate,
    )


# Asynchronous although they wait for nothing: FastAPI would spend a thread on each otherwise.
async def _door(request: Request) -> Door:
    return cast(Door, request.app.state.door)


async def _shop(request: Request) -> Shop:
    return cast(Door, request.app.state.door).shop


TheDoor = Annotated[Door, Depends(_door)]
TheShop = Annotated[Shop, Depends(_shop)]
