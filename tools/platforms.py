"""The page of platforms, from what each platform's module says and declares."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import getdoc

from catchment import platforms
from catchment.model import (
    Budget,
    Field,
    Kind,
    Listing,
    Order,
    Platform,
)

HEAD = """\
# Platforms

<!-- Built by `make docs` from the modules in catchment/platforms/; change it there. -->

What you can follow, how catchment reads it, and what it cannot see. `catchment sources add KIND TARGET` adds a source.
The interval is the time between two visits, unless `FETCH_INTERVAL_<KIND>`, the source's own interval or the platform
itself says otherwise. [Adding a platform](adding-a-platform.md) takes one module and one folder of test cases.
"""

ORDERS = {
    Order.NEWEST_FIRST: "newest first, page by page, down to what is stored",
    Order.RANKED: "ranked; proves nothing about what is missing",
    Order.SNAPSHOT: "as it is at this moment",
}
WINDOW = "the newest few"


def ours() -> list[Platform]:
    """Those of this repository: what else happens to be installed here has its own words elsewhere."""
    return [platform for platform in platforms.installed() if _name(platform).startswith(f"{platforms.__name__}.")]


def platforms_page() -> str:
    return HEAD + "\n" + "\n".join(line for platform in ours() for line in _section(platform))


def _name(platform: Platform) -> str:
    return str(getattr(platform, "__name__", ""))


def _section(platform: Platform) -> Iterator[str]:
    summary, _, rest = (getdoc(platform) or "").partition("\n\n")
    yield f"## {platform.NAME}"
    yield ""
    yield summary
    yield ""
    yield "| kind | what | for example | every | listings |"
    yield "|---|---|---|---|---|"
    yield from (_kind(kind) for kind in platform.KINDS)
    yield ""
    yield from _fields(platform.KINDS)
    yield f"**Requests.** {_manners(platform)}"
    yield ""
    yield rest
    yield ""


def _kind(kind: Kind) -> str:
    listings = "; ".join(_listing(listing) for listing in kind.listings)
    return f"| `{kind.name}` | {kind.what} | `{kind.example}` | {_span(kind.interval_minutes)} | {listings} |"


def _listing(listing: Listing) -> str:
    reach = f", {listing.reach:,} of them" if listing.reach else ""
    return f"`{listing.name}`: {WINDOW if listing.is_window else ORDERS[listing.order]}{reach}"


def _span(minutes: int) -> str:
    return f"{minutes // 60} h" if minutes % 60 == 0 else f"{minutes} min"


def _fields(kinds: tuple[Kind, ...]) -> Iterator[str]:
    rows = [_field(kind, field) for kind in kinds for field in kind.fields]
    if rows:
        yield "| kind | setting (`--set`) | what | default | allowed |"
        yield "|---|---|---|---|---|"
        yield from rows
        yield ""


def _field(kind: Kind, field: Field) -> str:
    default = "" if field.default is None else f"`{field.default}`"
    return f"| `{kind.name}` | `{field.name}` | {field.what} | {default} | {_allowed(field)} |"


def _allowed(field: Field) -> str:
    least = [] if field.minimum is None else [f"from {field.minimum}"]
    most = [] if field.maximum is None else [f"to {field.maximum}"]
    return ", ".join(field.choices) or " ".join(least + most)


def _manners(platform: Platform) -> str:
    services = platforms.services_of(platform)
    if services:
        return " ".join(f"`{service.name}`: {_limits(service.name, service.budget)}" for service in services)
    told = _limits(platform.NAME, platform.BUDGET)
    if getattr(platform, "OBEYS_ROBOTS", False):
        told += " Each site's robots.txt is requested first, and obeyed."
    return told


def _limits(name: str, budget: Budget | None) -> str:
    if budget is None:
        told = (
            "No declared budget: polite to each host, by `CATCHMENT_HOST_CONCURRENCY` and "
            "`CATCHMENT_HOST_REQUESTS_PER_SECOND`."
        )
    else:
        each = " for each credential" if budget.is_per_credential else ""
        at_once = f", {budget.concurrency} at once" if budget.concurrency else ""
        told = f"At most {budget.limit} in {budget.window_seconds:g} s{at_once}{each}, for the whole deployment."
    return f"{told} With `CATCHMENT_{name.upper()}_BASE_URL`, they go to another server."
