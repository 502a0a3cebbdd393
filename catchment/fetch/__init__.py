"""The only place that opens a connection to a platform.

`client` is the door; around it, each rule has a module of its own: `urls` and `redirects` (where to), `guard` (never
there), `robots` (not where the site minds), `identity` (as whom), `manners` and `budgets` (not too often), `wire` (the
exchange itself), `encodings` and `headers` (what came), `refusals` (what it means). The rules are pure; what threads
share between requests is held beside them.
"""

from catchment.fetch.budgets import AIM, Asked, Budgets, Grant, Level, MemoryBudgets, StoredBudgets
from catchment.fetch.client import Fetch
from catchment.fetch.headers import cache_seconds, keepable_headers, validators
from catchment.fetch.manners import Pauses
from catchment.fetch.redis_budgets import budgets_in
from catchment.fetch.settings import Attempt, FetchSettings, PlatformSettings
from catchment.fetch.urls import may_share

__all__ = [
    "AIM",
    "Asked",
    "Attempt",
    "Budgets",
    "Fetch",
    "FetchSettings",
    "Grant",
    "Level",
    "MemoryBudgets",
    "Pauses",
    "PlatformSettings",
    "StoredBudgets",
    "budgets_in",
    "cache_seconds",
    "keepable_headers",
    "may_share",
    "validators",
]
