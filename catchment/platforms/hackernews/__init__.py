"""Stories of Hacker News: its own lists, and searches.

**Access.** No account. Give a list (`top`, `new`, `best`, `ask`, `show`, `job`), a search (`search:WORDS`), or the
address of either: https://news.ycombinator.com/newest, https://hn.algolia.com/?q=WORDS. Lists come from the site's own
service (Firebase), searches from Algolia's. A story that both show is one item.

**Limits.** A list is one request, and one more for each story that is not held yet: `new`, `top` and `best` show 500 at
most, the others 200. A search is read newest first, 100 stories a request, and goes back as far as it must: where
Algolia ends a query after 1,000 hits, the next one begins at the oldest of them. Algolia allows 10,000 requests an
hour; both services together are kept below that.

**Blind spots.** Comments, and the options of a poll, are not read. What was dead or deleted before we looked is counted
and not stored; what dies later is marked when the story is looked at again (after 1 hour, 36 hours, 7 and 30 days), and
keeps the text we have. `top`, `best`, `ask`, `show` and `job` are ranked: they cannot prove that nothing is missing;
`new` and searches can. The search service learns of a story some minutes after the site, and of its edits later still.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from catchment.errors import InvalidInput
from catchment.model import (
    Answer,
    Ask,
    Budget,
    Field,
    Kind,
    Listing,
    Look,
    Order,
    Progress,
    Reading,
    Refusal,
    Request,
    Source,
    Target,
)
from catchment.platforms.hackernews import algolia, firebase, refusals, stories, targets

NAME = "hackernews"
HOSTS: tuple[str, ...] = (firebase.HOST, algolia.HOST)
# Algolia's own figure. The other service names none: what is gentle for the one is gentle for both.
BUDGET: Budget | None = Budget(NAME, limit=10_000, window_seconds=3600, concurrency=8)
IS_SCOPED = False
READER_VERSION = 1

SEARCH = Listing(
    targets.SEARCH,
    Order.NEWEST_FIRST,
    page_size=algolia.PAGE_SIZE,
    # Stories are not indexed in the order in which they were posted: what came late stands among what is known.
    overlap=20,
)
LISTINGS = (
    Listing("new", Order.NEWEST_FIRST, reach=500, page_size=500),
    Listing("top", Order.RANKED, reach=500, page_size=500),
    Listing("best", Order.RANKED, reach=500, page_size=500),
    Listing("ask", Order.RANKED, reach=200, page_size=200),
    Listing("show", Order.RANKED, reach=200, page_size=200),
    Listing("job", Order.RANKED, reach=200, page_size=200),
    SEARCH,
)
KINDS = (
    Kind(
        name="hackernews",
        what="Stories of Hacker News: one of its lists (top, new, best, ask, show, job), or search:WORDS",
        interval_minutes=60,
        example="new",
        listings=LISTINGS,
        fields=(
            Field(
                "listing",
                "Which list is read, if not the one that the target names; `search` belongs to search:WORDS",
                choices=tuple(listing.name for listing in LISTINGS),
            ),
        ),
        item_kind=stories.KINDS[0],
        more_item_kinds=stories.KINDS[1:],
        look_after=(timedelta(hours=1), timedelta(hours=36), timedelta(days=7), timedelta(days=30)),
    ),
)


def understand(text: str) -> Target:
    return targets.understood(text)


def first(source: Source, progress: Progress, ask: Ask) -> list[Request]:
    words = targets.words_of(source.target)
    if (ask.listing == SEARCH.name) != (words is not None):
        raise InvalidInput(
            f"{source.target!r} cannot be read as the listing {ask.listing!r}",
            "a search is read as search, a list as one of the lists: change the setting listing",
            field="listing",
        )
    return [firebase.list_request(ask.listing) if words is None else algolia.request(words)]


def look_again(looks: Sequence[Look]) -> list[Request]:
    """One request for each: the site tells of one item at a time, and it alone says that a story died."""
    return [firebase.item_request(look.external_id, firebase.LOOK) for look in looks]


def read(answer: Answer, request: Request) -> Reading:
    if request.step != "list":
        return firebase.read_item(answer, request)
    return algolia.read(answer, request) if request.listing == SEARCH.name else firebase.read_list(answer, request)


def refusal(answer: Answer, request: Request) -> Refusal | None:
    return refusals.refusal(answer)
