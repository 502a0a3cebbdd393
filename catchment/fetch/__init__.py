"""HTTP access to platforms: the only package that opens a connection to one.

`client` is the entry point; each rule has a module of its own: `urls` (targets and redirects), `address_guard`
(forbidden addresses), `robots` (robots.txt), `auth` (credentials), `throttle` and `budgets` (rate limits), `transport`
(the exchange itself), `responses` (what headers and statuses mean). The rules are pure; state that threads share
between requests is held beside them.
"""

from catchment.fetch.auth import bound_host, host_of, is_for, mismatch, place_of
from catchment.fetch.budgets import AIM, Asked, Budgets, Grant, Level, StoredBudgets, budgets_in
from catchment.fetch.client import Fetch
from catchment.fetch.responses import cache_seconds, keepable_headers, validators
from catchment.fetch.settings import Attempt, FetchSettings, PlatformSettings
from catchment.fetch.throttle import Pauses
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
    "Pauses",
    "PlatformSettings",
    "StoredBudgets",
    "bound_host",
    "budgets_in",
    "cache_seconds",
    "host_of",
    "is_for",
    "keepable_headers",
    "may_share",
    "mismatch",
    "place_of",
    "validators",
]
