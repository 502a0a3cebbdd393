"""Database access: the only package with SQL. One object per topic; each method answers one question of the product."""

from catchment.store.leases import Presence
from catchment.store.store import Store, open_store

__all__ = ["Presence", "Store", "open_store"]
