"""Ten million items cost no more than ten: every question runs along an index, and every list stops at its end.

What is asked is found by looking: every reading path of the API with every parameter it describes, every page with
every field that leads back to it, every command that reads with every option, every verb of the store. What the
database is really told is taken down and its plans are read.
"""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from html import unescape
from pathlib import Path
from threading import Event as Flag
from typing import Any
from urllib.parse import parse_qsl

import pytest
from fastapi.routing import APIRoute

import catchment.store.store
from catchment.cli.main import commands
from catchment.cli.main import run as cli_run
from catchment.events.watches import run_watches
from catchment.health.metrics import MetricsRecorder
from catchment.model import (
    UNDATED,
    AlertRequest,
    Booking,
    FollowUp,
    NextRecheck,
    Ordering,
    Outcome,
    Reference,
    Request,
    SourceState,
    StoredEntries,
    Target,
    ThreadMarks,
    ThreadResult,
    VisitResult,
    Watch,
)
from catchment.store import Store
from catchment.store.cache import CacheCounts, CachedSet, CacheKey
from catchment.store.credentials import Decided
from catchment.store.item_fields import ItemView
from catchment.store.items.change_feed import ChangeCursor
from catchment.store.items.deletion import Forget
from catchment.store.items.floor_audits import IncompleteThread
from catchment.store.items.follow_ups import queue_follow_ups, update_follow_ups
from catchment.store.items.items import ExportFilter
from catchment.store.items.reparse import ReparseFilter
from catchment.store.items.reply_counts import count_replies
from catchment.store.leases import living
from catchment.store.schema import metadata
from catchment.store.search.index import remove
from catchment.store.search.lists import Filter, newest_with
from catchment.store.search.lists import ListFilter as Asked
from catchment.store.sources.gaps import RepairEnd
from catchment.store.sources.metrics import MetricSpan
from catchment.store.sources.sources import ListedChanges
from catchment.store.sources.sources import SourceRequest as Following
from catchment.store.sources.stats import RequestsUsed
from catchment.store.spending import PaidCall
from catchment.text.clean import fingerprint
from catchment.web.app import PAGES
from tests.store.desk import MINUTES, Desk, opened, post
from tests.store.sample import fill
from tests.store.watching import Statement, WatchingDatabase
from tests.town import TownApp
from tests.web import desk as api_desk

# They do not grow with what is collected.
SMALL = {
    "owners",
    "jobs",
    "settings",
    "credentials",
    "api_keys",
    "sessions",
    "ledger",
    "budgets",
    "index_mark",
    "told",
    "few",
}
SMALL |= {"webhooks", "deliveries", "watches", "tasks", "task_targets"}
# One row for each service and day; and for each call or walk in progress.
SMALL |= {"spending_totals", "reservations", "unfinished_walks"}
# What waits to be indexed, as far as it is looked through.
SMALL |= {"waiting"}
# They grow with what is followed: a figure may be counted over all of it, along an index.
FOLLOWED = {"sources", "progress"}
# Kept answers are gone through whole by whoever reads them again, in short reads.
GONE_THROUGH = {"raw_answers"}
# Such an index holds only what is open, waiting or failing: the few.
PARTIAL = {
    str(index.name)
    for table in metadata.tables.values()
    for index in table.indexes
    if index.dialect_options["sqlite"]["where"] is not None
}
EXPLAINABLE = {"SELECT", "INSERT", "UPDATE", "DELETE", "WITH"}
STORE_MODULES = {found.name for found in pkgutil.walk_packages(catchment.store.__path__, "catchment.store.")}

Asking = Callable[[Desk], object]


def threaded(desk: Desk) -> ItemView:
    """An item that opens a thread."""
    return desk.store.items.get(1).replace(thread_id="t", is_head=True)


def days_ago(desk: Desk, days: int) -> datetime:
    return desk.now - timedelta(days=days)


QUESTIONS: dict[str, Asking] = {
    "what a call may cost is reserved": lambda desk: desk.store.spending.reserve(
        PaidCall("x", None, 1, "2026-01-01", 150), 1, desk.now, lambda totals, cost: None
    ),
    "what calls cost is booked": lambda desk: desk.store.spending.settle(
        [Booking("x", None, 1, "2026-01-01", amount=150)]
    ),
    "what was reserved and never booked": lambda desk: desk.store.spending.recover(desk.now + timedelta(days=1)),
    "what services cost": lambda desk: desk.store.spending.totals(["x"], "2026-01-01"),
    "what services cost by day": lambda desk: desk.store.spending.by_day("2026-01-01"),
    "what credentials cost": lambda desk: desk.store.spending.by_credential("2026-01"),
    "what sources cost": lambda desk: desk.store.spending.by_source("2026-01", 10),
    "what a source costs": lambda desk: desk.store.spending.of_source(1, "2026-01-01"),
    "what the last answer showed": lambda desk: desk.store.shown_entries.of_answer(1, b"hash"),
    "where a walk goes on": lambda desk: desk.store.unfinished_walks.of_source(1),
    "a walk that begins anew": lambda desk: desk.store.unfinished_walks.forget(1),
    "what is due": lambda desk: desk.due(3),
    "newest": lambda desk: desk.store.items.newest(3),
    "newest, next page": lambda desk: desk.store.items.newest(3, before=(10**16, 5)),
    "newest of a source": lambda desk: desk.store.items.newest(3, source_id=1),
    "newest of a source, next page": lambda desk: desk.store.items.newest(3, source_id=1, before=(10**16, 5)),
    "an export": lambda desk: list(desk.store.exports.of(ExportFilter())),
    "an export of a kind": lambda desk: list(desk.store.exports.of(ExportFilter(kind="rss"))),
    "an export of a source": lambda desk: list(
        desk.store.exports.of(ExportFilter(source_id=1, since=days_ago(desk, 5)))
    ),
    "an export from some day on": lambda desk: list(desk.store.exports.of(ExportFilter(since=days_ago(desk, 5)))),
    "newest of an author, changed since": lambda desk: desk.store.items.listed(
        Filter(author="ada", changed_since=1), 3
    ),
    "answered last": lambda desk: desk.store.items.listed(Filter(), 3, (10**16, 5), Ordering.REPLIED),
    "answered last, of a source, a kind and a platform": lambda desk: desk.store.items.listed(
        Filter(2, "post", "reddit", since=days_ago(desk, 5)), 3, order=Ordering.REPLIED
    ),
    "answered last, of an author, with a tag": lambda desk: desk.store.items.listed(
        Filter(author="ada", tag="日", is_edited=True), 3, order=Ordering.REPLIED
    ),
    "answered last, changed since": lambda desk: desk.store.items.listed(
        Filter(changed_since=1), 3, order=Ordering.REPLIED
    ),
    "a reply, and a head after its reply": lambda desk: [
        desk.show(desk.store.sources.get(1), post("early", thread_id="t"), post("t", thread_id="t", is_head=True)),
        desk.show(desk.store.sources.get(1), post("late", thread_id="t"), post("t", last_reply_at=desk.now)),
    ],
    "which names there are": lambda desk: [
        desk.store.items.has_kind("no such kind"),
        desk.store.sources.kinds(),
        desk.store.sources.platforms_ever(),
    ],
    "one item": lambda desk: desk.store.items.get(1),
    "which ids are held": lambda desk: desk.store.items.ids_of("feeds", ["a", "b"]),
    "what was said in a thread": lambda desk: desk.store.items.replies(1, 3, (5, 5)),
    "the replies to an item": lambda desk: [
        desk.show(desk.store.sources.get(1), post("reply", references=(Reference("replied_to", external_id="1"),))),
        desk.store.replies.tree(desk.store.items.get(1).replace(external_id="1"), 3, (5, 5)),
    ],
    "replies without a parent": lambda desk: desk.store.replies.orphans(threaded(desk), 3, (5, 5)),
    "replies without a number": lambda desk: desk.store.replies.unnumbered(threaded(desk), 3, (5, 5)),
    "parents by number": lambda desk: desk.show(
        desk.store.sources.get(1), post("r", thread_id="t", floor_number=3, parent_floor=2)
    ),
    "floors by number": lambda desk: desk.store.replies.floors(threaded(desk), 7, 3),
    "what an item replies to": lambda desk: desk.store.replies.context(
        desk.store.items.get(1).replace(parent_id=desk.store.items.get(2).external_id)
    ),
    "what opens a thread": lambda desk: desk.store.replies.root(threaded(desk)),
    "how much of a thread is stored": lambda desk: desk.store.replies.stored_count(threaded(desk)),
    "replies that are still to be fetched": lambda desk: desk.store.replies.has_pending(1),
    "edited items": lambda desk: desk.store.items.listed(Filter(is_edited=True), 3),
    "what sources are called": lambda desk: desk.store.sources.names([1, 2, None]),
    "what the first sources are called": lambda desk: desk.store.sources.first_names(2),
    "how many alerts are open": lambda desk: desk.store.alerts.count_open(),
    "stored after": lambda desk: desk.store.items.stored_after(1, 3),
    "edited after": lambda desk: desk.store.items.edits_after(0, 3),
    "an item at a moment": lambda desk: desk.store.items.as_of(1, desk.now),
    "changes of content": lambda desk: desk.store.changes.after(ChangeCursor(1), 3),
    "changes, counters too": lambda desk: desk.store.changes.after(ChangeCursor(1, 2), 3, counters=True),
    "raw items": lambda desk: desk.store.raw_items.page(3),
    "raw items of a source, since, next page": lambda desk: desk.store.raw_items.page(
        3, source_id=1, since=desk.now, before=(10**16, 5)
    ),
    "raw items for a digest": lambda desk: desk.store.raw_items.for_digest(3, since=desk.now),
    "how much each source brought": lambda desk: desk.store.raw_items.stats(desk.now),
    "its revisions": lambda desk: desk.store.items.revisions(1),
    "its counters": lambda desk: desk.store.items.counters(1),
    "its appearances": lambda desk: desk.store.items.appearances(1),
    "whether looks are due": lambda desk: desk.store.rechecks.is_any_due(["reddit"], desk.now + timedelta(days=9)),
    "the looks that are due": lambda desk: due_looks(desk),
    "threads": lambda desk: [
        desk.store.threads.waiting_sources(["feed", "rss"]),
        desk.store.threads.sources(["feed", "rss"]),
        desk.store.threads.count_waiting(3),
        desk.store.threads.state(3, "d"),
        desk.store.threads.of_source(3, 3),
        desk.store.threads.of_item(1),
        desk.store.threads.holes(1, 0, 100),
        desk.store.threads.holes_of_item(1, 0, 100),
        desk.store.threads.titles([1, 2]),
        desk.store.threads.board_runs(3, limit=3),
        desk.store.threads.thread_runs(1, 3),
    ],
    "reading a thread": lambda desk: read_thread(desk),
    "an audit of floors": lambda desk: audited(desk),
    "what is owed about items": lambda desk: [desk.store.follow_ups.of_source(2, 3), desk.store.follow_ups.count(2)],
    "settling what is owed": lambda desk: desk.store.database.write(
        lambda tx: [
            queue_follow_ups(tx, desk.store.sources.get(2), [(1, (Request("https://r.example/"),))], 1),
            update_follow_ups(
                tx,
                desk.store.sources.get(2),
                [FollowUp(1, "a", (Request("https://r.example/"),)), FollowUp(2, "b", ())],
                desk.now,
            ),
        ]
    ),
    "a counted page": lambda desk: desk.show(desk.store.sources.get(1), post("new -3", score=99, rank=2)),
    "a page that repeats an entry": lambda desk: desk.show(
        desk.store.sources.get(1), post("entirely new"), repeated=StoredEntries([1], [2], [UNDATED])
    ),
    "how many items": lambda desk: desk.store.items.count(),
    "open gaps": lambda desk: desk.store.gaps.page(),
    "open gaps of a source": lambda desk: desk.store.gaps.page(source_id=1),
    "gaps": lambda desk: desk.store.gaps.page(include_closed=True),
    "gaps of a source": lambda desk: desk.store.gaps.page(source_id=1, include_closed=True),
    "open gaps, newest first": lambda desk: desk.store.gaps.newest(3),
    "closed gaps of a source, newest first": lambda desk: desk.store.gaps.newest(
        3, is_open=False, source_id=1, before=9
    ),
    "which sources have gaps": lambda desk: desk.store.gaps.by_source(3),
    "how many open gaps": lambda desk: desk.store.gaps.count_open(),
    "runs": lambda desk: desk.store.runs.page(3),
    "a run": lambda desk: desk.store.runs.get(desk.run_id),
    "what a run came to": lambda desk: desk.store.runs.results(desk.run_id, 1, 3),
    "what failed in a run": lambda desk: desk.store.runs.results(desk.run_id, outcome=Outcome.FAILED),
    "what runs have come to so far": lambda desk: desk.store.runs.up_to_now(desk.store.runs.page(3)),
    "visits to a few sources": lambda desk: desk.store.runs.visits_since([1, 2], days_ago(desk, 1)),
    "what is being visited": lambda desk: under_way(desk),
    "the latest visits": lambda desk: desk.store.runs.latest(3),
    "when a source posts": lambda desk: desk.store.rhythm_stats.posted(1, 3),
    "how late it is captured": lambda desk: desk.store.rhythm_stats.delays([days_ago(desk, 5)], timedelta(days=1), 3),
    "runs of a source": lambda desk: desk.store.runs.of_source(1),
    "the last day": lambda desk: desk.store.runs.last_day(desk.now),
    "open alerts": lambda desk: desk.store.alerts.open(),
    "alerts, next page": lambda desk: desk.store.alerts.page(3, before=9, include_closed=True),
    "how severe the open alerts are": lambda desk: desk.store.alerts.open_by_severity(),
    "what visiting came to": lambda desk: [
        measuring(desk).measure(MetricSpan.HOUR, desk.now + timedelta(days=1)),
        measuring(desk).latest(MetricSpan.DAY, 3, desk.now),
    ],
    "why visits failed": lambda desk: desk.store.metrics.errors(days_ago(desk, 1), desk.now),
    "whether sources are collected": lambda desk: desk.store.sources.states([1, 2, None]),
    "how the last visits ended": lambda desk: desk.store.metrics.last_outcomes(days_ago(desk, 1), desk.now),
    "which jobs are due": lambda desk: desk.store.jobs.due(desk.now, {"collect-due": timedelta(hours=1)}),
    "which beat leads": lambda desk: desk.store.leadership.leader(),
    "when a job last ran": lambda desk: desk.store.jobs.last_started_at("collect-due"),
    "outages of sources": lambda desk: desk.store.alerts.tell_failing(
        [AlertRequest("source 1 failing", "so", source_id=1)], ["source 2 failing"], desk.now
    ),
    "whether a visit went well": lambda desk: desk.store.metrics.has_visited(days_ago(desk, 1)),
    "where visits went well": lambda desk: desk.store.metrics.visited_targets(days_ago(desk, 1)),
    "what is late": lambda desk: desk.store.lateness_stats.waiting(MINUTES, 60, desk.now + timedelta(days=9)),
    "who waits for a first visit": lambda desk: [desk.follow("unseen"), desk.store.lateness_stats.warm_ups()],
    "which platforms are followed": lambda desk: desk.store.sources.platforms(),
    "what was ever followed": lambda desk: [desk.store.sources.kinds(), desk.store.sources.platforms_ever()],
    "whether there is anything of a kind": lambda desk: [
        desk.store.items.has_kind(kind) for kind in ("rss", "never seen")
    ],
    "who needs how much": lambda desk: desk.store.plan_stats.followed(),
    "what visits took": lambda desk: desk.store.plan_stats.requests_per_visit(days_ago(desk, 3)),
    "what was taken": lambda desk: [
        desk.store.plan_stats.keep(RequestsUsed({1: 2.0}, {}), desk.now),
        desk.store.plan_stats.kept(),
    ],
    "what others asked": lambda desk: desk.store.plan_stats.requests_besides("collect-due", days_ago(desk, 1)),
    "which calls were made": lambda desk: desk.store.metrics.calls(days_ago(desk, 1), desk.now),
    "how many calls were made": lambda desk: desk.store.metrics.calls_since(days_ago(desk, 1)),
    "closed alerts": lambda desk: desk.store.alerts.closed(3),
    "sources with a rhythm": lambda desk: desk.store.alerts.with_rhythm(),
    "a gap that is repaired": lambda desk: repaired(desk),
    "threads with missing replies": lambda desk: desk.store.reply_counts.worst(3),
    "threads of a source with missing replies": lambda desk: desk.store.reply_counts.worst(
        3, source_id=1, after=(5, 5)
    ),
    "counting the replies of threads": lambda desk: desk.store.database.write(
        lambda tx: [count_replies(tx, "reddit", "", ["d"], is_known=known) for known in (False, True)]
    ),
    "gaps since": lambda desk: desk.store.gaps.since(1, desk.now),
    "late sources": lambda desk: desk.store.alerts.late_sources(desk.now),
    "failing sources": lambda desk: desk.store.failure_stats.failing(10),
    "how many fail": lambda desk: desk.store.failure_stats.counts(5),
    "how many have a rhythm": lambda desk: desk.store.alerts.with_rhythm(),
    "how many sources": lambda desk: desk.store.sources.counts(),
    "who follows that": lambda desk: desk.store.sources.of_target("rss", "https://one.example/"),
    "following many": lambda desk: desk.store.sources.follow_many(
        [Following(Target("rss", f"https://{name}.example/"), "feeds") for name in ("one", "new")], desk.now
    ),
    "communities by average": lambda desk: desk.store.tier_stats.by_average(2),
    "communities by average, next page": lambda desk: desk.store.tier_stats.by_average(2, (12.5, 1)),
    "how many are in each tier": lambda desk: desk.store.tier_stats.counts(),
    "other tiers": lambda desk: desk.store.tier_stats.assign(
        [(source, progress.replace(tier="tier1")) for source, progress in desk.store.tier_stats.by_average(2)]
    ),
    "who was left alone": lambda desk: desk.store.tier_stats.neglected(["reddit"], 50, desk.now, 3),
    "what a list says of them": lambda desk: desk.store.sources.merge({1: ListedChanges(("x",)), 2: ListedChanges()}),
    "pausing": lambda desk: desk.store.sources.set_state(2, SourceState.PAUSED, None, desk.now),
    "credentials": lambda desk: [desk.store.credentials.page(), desk.store.credentials.known()],
    "what became of a credential": lambda desk: desk.store.credentials.changes("somebody", 3),
    "which platforms have a credential": lambda desk: desk.store.credentials.platforms(),
    "deciding about a platform's credentials": lambda desk: desk.store.credentials.of_platform(
        "feeds", desk.now, lambda pool: Decided(None, [credential.replace(use_count=1) for credential in pool], [])
    ),
    "deciding about a credential": lambda desk: desk.store.credentials.of_name(
        "somebody", desk.now, lambda pool: Decided(None)
    ),
    "a credential": lambda desk: desk.store.credentials.get("somebody"),
    "a secret": lambda desk: desk.store.credentials.sealed("somebody"),
    "an answer that was kept": lambda desk: desk.store.reparses.answer(1),
    "sources": lambda desk: desk.store.sources.page(after=1, limit=2),
    "a few sources": lambda desk: desk.store.sources.these([2, 1, 99]),
    "sources by name": lambda desk: desk.store.sources.page(words="one", after=0, limit=2, kind="rss"),
    "what is overdue": lambda desk: desk.store.sources.overdue({"rss": 60}, 60, desk.now + timedelta(days=1), 3),
    "when the next source is due": lambda desk: desk.store.sources.next_due(MINUTES, 60),
    "which categories there are": lambda desk: desk.store.sources.categories(),
    "sources of a category": lambda desk: desk.store.sources.page(category="news", words="one", limit=2),
    "a source by its name": lambda desk: desk.store.sources.matching("one", 2),
    "newest of a category": lambda desk: desk.store.items.listed(Filter(category="news", since=days_ago(desk, 5)), 3),
    "answered last, of a category": lambda desk: desk.store.items.listed(
        Filter(category="news"), 3, order=Ordering.REPLIED
    ),
    "search of a category": lambda desk: desk.store.search.find("天", Filter(category="news"), limit=2),
    "one source": lambda desk: desk.store.sources.with_progress(1),
    "who is waited for": lambda desk: desk.store.sources.requested(desk.now, 5),
    "claiming who is waited for": lambda desk: desk.store.sources.claim_requested(
        {1: 0}, desk.presence.owner_id, desk.now
    ),
    "who holds it": lambda desk: desk.store.sources.holder(1),
    "following": lambda desk: [desk.follow("one"), desk.follow("never seen")],
    "silence": lambda desk: desk.store.alerts.keep_open(
        " silent", [AlertRequest("source 1 silent", "so", source_id=1)], desk.now
    ),
    "clearing": lambda desk: desk.store.cleanup.clear(
        desk.now + timedelta(days=99), raw_days=1, run_days=1, attempt_days=1, event_days=1, metrics_days=1
    ),
    "answers to read again": lambda desk: desk.store.reparses.waiting(ReparseFilter({"feeds": 2}), (desk.now, 1), 3),
    "answers of a source to read again": lambda desk: desk.store.reparses.waiting(
        ReparseFilter({"feeds": 2}, 1), None, 3
    ),
    "how many answers to read again": lambda desk: desk.store.reparses.count(ReparseFilter({"feeds": 2}, 1)),
    "watches": lambda desk: [desk.store.watches.page(), desk.store.watches.get(1), desk.store.watches.newest(3)],
    "what a watch looks at": lambda desk: desk.store.watches.changed_after((1, 2), 3),
    "what a watch hit": lambda desk: desk.store.watches.hits(1),
    "a watch looks": lambda desk: [
        run_watches(desk.store.watches, desk.clock.now, Flag(), batch=2),
        desk.store.watches.add(Watch("another", ("word",)), desk.now),
    ],
    "listeners": lambda desk: [desk.store.deliveries.page(), desk.store.deliveries.due(desk.now, 3)],
    "events after": lambda desk: desk.store.outbox.after(1, 3),
    "items past their time": lambda desk: desk.store.retention.clear({"hackernews": 1, "reddit": 9**5}, desk.now),
    "what was forgotten": lambda desk: desk.store.deletion.records(3),
    "how much is to be forgotten": lambda desk: desk.store.deletion.count(
        Forget("author", "feeds", "me", author="ada")
    ),
    "which platform an item is of": lambda desk: desk.store.deletion.platform_of(3),
    "whether a platform was followed once": lambda desk: desk.store.deletion.followed_on("feeds"),
    "forgetting an item": lambda desk: desk.store.deletion.forget(Forget("item", "feeds", "me", item_id=3), desk.now),
    "whether a hot set is true": lambda desk: desk.store.cached_sources.stamp(2),
    "a hot set": lambda desk: kept_hot(desk),
    "who is cold": lambda desk: desk.store.cached_sources.cold(["reddit"], desk.now),
    "how warm they are": lambda desk: desk.store.cached_sources.warmth(["reddit"], desk.now),
    "how warm one is": lambda desk: desk.store.cached_sources.of_source(2),
    "of whom something is hot": lambda desk: desk.store.cached_sources.known_of("reddit"),
    "what was forgotten of that": lambda desk: desk.store.cached_sources.unforgotten(
        "feeds", [{"scope": "", "external_id": "x", "author": "somebody", "author_id": None}]
    ),
    "a cache-only crawl": lambda desk: warmed(desk),
    "a hot page": lambda desk: hot_page(desk),
    "who is there": lambda desk: living(desk.store.database, desk.store.home, desk.now),
    "freeing what the dead left": lambda desk: desk.presence.bury(desk.now),
    "newest with facets": lambda desk: desk.store.database.read(
        lambda tx: newest_with(tx, Asked((("platform:feeds", "platform:reddit"), ("kind:rss",))), 3, (10**16, 5))
    ),
    "search": lambda desk: desk.store.search.find("天", Filter(kind="rss", author="x", since=desk.now), limit=2),
    "search of a source": lambda desk: desk.store.search.find("天", Filter(source_id=1), limit=2),
    "search, the best": lambda desk: desk.store.search.find("第 天", is_best=True, limit=2),
    "search, next page": lambda desk: desk.store.search.find("天", limit=2, after=str(2**62)),
    "how far the index is behind": lambda desk: desk.store.index.behind(),
    "a new page": lambda desk: desk.show(desk.store.sources.get(1), post("x", tags=("日",)), post("y"), body=b"new"),
    "an edited page": lambda desk: desk.show(desk.store.sources.get(1), post("-2", "new"), post("new -3", "new")),
    "indexing": lambda desk: desk.store.index.advance(),
    "leaving the index": lambda desk: desk.store.database.write(lambda tx: remove(tx, [1, 2])),
}

OTHER_VERBS = {
    # They look at all that is followed, because all of it is meant.
    *("sources.ids", "sources.reset_future_times", "failure_stats.standings"),
    # It goes through everything, a few rows at a time: whoever looks for secrets leaves nothing out.
    *("secret_scans.size", "secret_scans.rows"),
    # They write.
    *("runs.begin", "runs.finish", "credentials.add", "credentials.remove", "credentials.announce"),
    *("reparses.apply", "reparses.read", "page_writer.group"),
    *(
        "sources.change",
        "sources.set_canonical_target",
        "sources.mark_due",
        "jobs.wake",
        "sources.give_back",
        "page_writer.end",
        "page_writer.keep_raw",
        "page_writer.facts",
        "page_writer.write_in",
        "index.update_planner_statistics",
        "index.purge",
    ),
}
# What stands in small tables may be looked at whole.
OF_SMALL_TABLES = {
    "encrypted",
    "api_keys",
    "sessions",
    "sign_in_links",
    "budgets",
    "jobs",
    "settings",
    "webhooks",
    "watches",
    "deliveries",
    "tasks",
}

# What can be given, by its name; or by path and name, where a name means something else.
EXAMPLES = {
    "after": "1",
    "/api/items after": "1700000000000000-1",
    "/api/items/{item_id}/replies after": "1700000000000000-1",
    "/api/raw-items after": "1700000000000000-1",
    "/api/missing-replies after": "5-1",
    "page /audits/replies after": "5-1",
    "threads": "true",
    "posts": "all",
    "/api/raw-items/for-digest after": "1700000000000000-1",
    "at": "2099-01-01T00:00:00Z",
    "before": "1700000000000000-1",
    "counters": "true",
    "days": "30",
    "format": "jsonl",
    "floor": "3",
    "images": "1",
    "include_closed": "true",
    "item_id": "1",
    "kind": "rss",
    "limit": "2",
    "orphans": "1700000000000000-1",
    "outcome": "failed",
    "among": "2",
    "author": "ada",
    "category": "news",
    "changed_since": "1",
    "changed-since": "1",
    "is_deleted": "true",
    "name": "crocus",
    "platform": "feeds",
    "tag": "day",
    "task_id": "1",
    "until": "2099-01-01T00:00:00Z",
    "words": "crocus",
    "q": "crocus",
    "/api/search after": str(2**62),
    "/api/tiers after": "12.5-1",
    "search after": str(2**62),
    "order": "newest",
    "/api/items order": "replied",
    "items order": "replied",
    "since": "2020-01-01T00:00:00Z",
    "source": "1",
    "source_id": "1",
    "span": "day",
    "hours": "3",
    "state": "active",
    "page /items after": "1700000000000000-1",
    "page /items/{item_id} after": "1700000000000000-1",
    "page /items state": "edited",
    "page /items order": "replied",
    "page /search after": str(2**62),
    "page /search state": "deleted",
    # By relevance there are no further pages, and a cursor is refused.
    "page /search order": "newest",
    "page /sources order": "troubled",
    "page /sources/add target": "https://one.example/",
    "page /gaps show": "closed",
    "page /runs/{run_id} outcome": "failed",
}

# Pages that ask nothing of the archive, or never end.
NOT_OF_THE_ARCHIVE = {"/login", "/static/{name}", "/live"}
# What addresses say beside fields and declared parameters.
ALSO = {
    "/items": ("after", "format", "order", "posts"),
    "/search": ("after", "format", "order", "posts"),
    "/sources": ("after",),
}

READING = {
    *("metrics", "alerts", "plan", "tiers", "spending"),
    *("items", "search", "show", "changes", "revisions", "gaps", "coverage", "status", "forgotten"),
    *(
        "sources list",
        "sources show",
        "credentials list",
        "credentials show",
        "webhooks list",
        "notifications list",
        "tasks list",
        "tasks show",
    ),
    *("hot status", "hot list", "keys list", "sessions list"),
    *("watches list", "watches show", "watches try"),
}
# Their last word says that they do something else, or go through everything because all of it is meant.
NOT_READING = {
    *(
        "serve",
        "worker",
        "beat",
        "alive",
        "collect",
        "demo",
        "reparse",
        "doctor",
        "migrate",
        "backup",
        "restore",
        "move",
        "audit",
        "export",
        "import",
    ),
    *("add", "change", "pause", "resume", "remove", "test", "item", "author", "clear", "cancel"),
    *("new-key", "rotate-key", "security-audit", "login-link", "revoke", "end", "set", "intervals"),
}


def audited(desk: Desk) -> object:
    audits = desk.store.floor_audits
    audit = audits.request("manual", desk.now, is_repairing=True, source_id=3)
    audits.requested()
    audits.begin(audit.id, desk.run_id, desk.now)
    audits.incomplete(3, 0)
    thread, floors = audits.note(audit.id, IncompleteThread(1, 3, "d", 19, (0, 1), (4, 5)))
    audits.reserve(1, [4, 5], desk.now)
    audits.give_back(1, [5])
    audits.end_thread(thread, list(floors.values()))
    audits.end(audit.id, {"thread_count": 1}, desk.now)
    return [audits.get(audit.id), audits.page(3), audits.threads(audit.id, 3), audits.floors(thread.id, 3)]


def repaired(desk: Desk) -> object:
    gaps, owner_id = desk.store.gaps, desk.presence.owner_id
    (gap,) = gaps.page(limit=1)
    claimed = gaps.claim(gap.id, 1, desk.run_id, owner_id, desk.now, 3)
    assert claimed
    gaps.end_repair(claimed, RepairEnd(None, "failed", "error", 1, 1, 0, 0, 500, "X", "no"), desk.now, is_free=True)
    claimed = gaps.claim(gap.id, 1, desk.run_id, owner_id, desk.now, 3)
    assert claimed
    gaps.release(claimed.lease)
    return [gaps.repairs(gap.id, 3), gaps.repairs_of_audit(1, 3)]


def read_thread(desk: Desk) -> object:
    threads, owner_id = desk.store.threads, desk.presence.owner_id
    threads.claim(3, owner_id, desk.now, desk.run_id)
    claimed = threads.claim_by_id(1, owner_id, desk.now)
    assert claimed
    threads.release(claimed.lease)
    claimed = threads.claim_by_id(1, owner_id, desk.now)
    assert claimed
    marks = ThreadMarks(claimed.thread, 3, 2, 19, "t1_e")
    threads.end(claimed.lease, desk.run_id, ThreadResult(claimed.thread), marks, desk.now)
    source = desk.store.sources.get(3)
    result = VisitResult(source.id, source.name, source.kind, Outcome.SUCCEEDED, started_at=desk.now)
    return threads.note(desk.run_id, source, result, {("200", desk.now): 1}, desk.now)


def measuring(desk: Desk) -> MetricsRecorder:
    return MetricsRecorder(desk.store.metrics, desk.store.cached_sources.counted, desk.store.tier_stats.counts)


def due_looks(desk: Desk) -> object:
    """Found, put off, noted down, and given back."""
    looks, now = desk.store.rechecks, desk.now + timedelta(days=9)
    lease = looks.claim("reddit", desk.presence.owner_id, desk.now)
    assert lease
    due = looks.due(lease, "reddit", now, 5)
    looks.reschedule(lease, [NextRecheck(1, now, 1)])
    source = desk.store.sources.get(1)
    result = VisitResult(source.id, source.name, source.kind, Outcome.SUCCEEDED, started_at=now, finished_at=now)
    looks.note(lease, desk.run_id, source, result, {("200", now): 1})
    looks.release(lease)
    return due


def warmed(desk: Desk) -> object:
    (claimed,) = desk.store.sources.claim([2], desk.presence.owner_id, desk.now)
    source = claimed.source
    result = VisitResult(
        source.id, source.name, source.kind, Outcome.SUCCEEDED, started_at=desk.now, finished_at=desk.now
    )
    desk.store.cached_sources.ended(source, claimed.lease, desk.run_id, result, {("200", desk.now): 1}, 3)
    return None


def kept_hot(desk: Desk) -> object:
    """Made, kept, read, counted, cleared."""
    table, sources, now = desk.store.cache_table, desk.store.cached_sources, desk.now
    table.put(CacheKey(2, False), CachedSet(1, ["{}"]), now, now + timedelta(hours=1))
    sources.count(now, CacheCounts(1, 1))
    return [
        sources.newest(2),
        table.get(CacheKey(2, False), now),
        (table.name, table.entry_count(now)),
        sources.counted(now, now + timedelta(hours=1)),
        sources.clear_counts(now),
        table.clear_expired(now + timedelta(days=1)),
        table.drop([2]),
    ]


def hot_page(desk: Desk) -> object:
    """A page of a community: what it changes is learnt by the hot store."""
    desk.invalidates_cache = True
    desk.show(desk.store.sources.get(2), post("t3_c", score=13), post("t3_new"))
    desk.invalidates_cache = False
    return None


def under_way(desk: Desk) -> object:
    claimed = desk.claim(desk.store.sources.get(1))
    found = desk.store.runs.under_way()
    assert [row.source_id for row in found] == [1]
    return [found, desk.give_back(claimed)]


@pytest.fixture
def watched(database_url: str, tmp_path: Path) -> Iterator[Desk]:
    """A filled archive whose database takes down what it is told."""
    plain = Desk(opened(database_url, tmp_path / "home"))
    fill(plain)
    plain.close()
    desk = Desk(Store(WatchingDatabase(database_url), tmp_path / "home", fingerprint), plain.clock)
    desk.run_id
    yield desk
    desk.close()


def test_every_question_runs_along_an_index(watched: Desk) -> None:
    found = {}
    for what, asking in QUESTIONS.items():
        told = told_by(watched, lambda asking=asking: asking(watched))  # type: ignore[misc]
        assert told, f"{what!r} asks nothing"
        found |= {(what, sql): faults for sql, faults in faults_of(watched, told).items()}
    assert found == {}


def test_every_verb_of_the_store_is_among_the_questions(watched: Desk) -> None:
    parts = {
        name: part
        for name, part in vars(watched.store).items()
        if type(part).__module__ in STORE_MODULES and name not in OF_SMALL_TABLES
    }
    asked: set[str] = set()
    for name, part in parts.items():
        setattr(watched.store, name, Listening(part, name, asked))
    for asking in QUESTIONS.values():
        asking(watched)
    verbs = {f"{name}.{verb}" for name, part in parts.items() for verb in dir(part) if not verb.startswith("_")}
    assert sorted(verbs - asked - OTHER_VERBS) == [], "give QUESTIONS one that asks it"


class Listening:
    """Stands before a part of the store, and notes which of its verbs are used."""

    def __init__(self, part: object, name: str, asked: set[str]) -> None:
        self._part, self._name, self._asked = part, name, asked

    def __getattr__(self, verb: str) -> Any:
        self._asked.add(f"{self._name}.{verb}")
        return getattr(self._part, verb)


# ── what the doors ask ────────────────────────────────────────────────────────────────────────────────────────────


def test_every_list_of_the_api_runs_along_an_index_whatever_it_is_filtered_by(
    watched: Desk, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catchment.store.store, "Database", lambda *_, **__: watched.store.database)
    api = api_desk.Desk(TownApp(tmp_path / "home", database_url, api_key="a key"))
    api.client = api.caller({"X-API-Key": "a key"})
    found = {}
    for path, params in all_questions(api.get("/openapi.json")["paths"]):
        told = told_by(watched, lambda path=path, params=params: answered(api, path, params))  # type: ignore[misc]
        found |= {(path, *params, sql): faults for sql, faults in faults_of(watched, told).items()}
    assert found == {}


def test_every_page_runs_along_an_index_whatever_its_fields_say(
    watched: Desk, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catchment.store.store, "Database", lambda *_, **__: watched.store.database)
    # What is asked at every request is asked of this, too; and nobody collects, so that it is asked who else does.
    api = api_desk.Desk(TownApp(tmp_path / "home", database_url, api_key="a key"), collects=False)
    api.here.clock.advance((watched.now - api.here.clock.now()).total_seconds())
    api.client = api.browser()
    found = {}
    for path, params in all_pages(api):
        told = told_by(watched, lambda path=path, params=params: answered(api, path, params))  # type: ignore[misc]
        found |= {(path, *params, sql): faults for sql, faults in faults_of(watched, told).items()}
    assert found == {}


def all_pages(api: api_desk.Desk) -> Iterator[tuple[str, dict[str, str]]]:
    """Every page: as it is, with each of its parameters alone, with all of them, and by its links to itself."""
    for router in PAGES:
        for route in router.routes:
            if not isinstance(route, APIRoute) or "GET" not in route.methods or route.path in NOT_OF_THE_ARCHIVE:
                continue
            path = re.sub(r"\{\w+}", "1", route.path)
            page = api.client.get(path).text
            names = [
                *(parameter.name for parameter in route.dependant.query_params),
                *fields_of(page, path),
                *ALSO.get(path, ()),
            ]
            given = {name: example_of(f"page {route.path}", name) for name in names}
            for params in ({}, *({name: value} for name, value in given.items()), given, *links_back(page, path)):
                yield path, params


def fields_of(page: str, path: str) -> list[str]:
    """Those of forms whose answer is the same page."""
    forms = re.findall(rf'<form([^>]*action="{re.escape(path)}".*?)</form>', page, re.DOTALL)
    asking = [form for form in forms if "method=" not in form.partition(">")[0]]
    return [name for form in asking for name in re.findall(r'<(?:input|select)\b[^>]*\bname="(\w+)"', form)]


def links_back(page: str, path: str) -> list[dict[str, str]]:
    return [dict(parse_qsl(unescape(query))) for query in re.findall(rf'href="{re.escape(path)}\?([^"#]*)', page)]


def answered(api: api_desk.Desk, path: str, params: dict[str, str]) -> None:
    answer = api.client.get(path, params=params)
    # What is not there has been looked for, too.
    assert answer.status_code in (200, 404), (path, params, answer.text)


def all_questions(paths: dict[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Every path that can be read: as it is, with each of its parameters alone, and with all of them."""
    for path, methods in paths.items():
        if "get" not in methods:
            continue
        taken = [parameter for parameter in methods["get"].get("parameters", ()) if parameter["in"] == "query"]
        given = {parameter["name"]: example_of(path, parameter["name"]) for parameter in taken}
        needed = {parameter["name"]: given[parameter["name"]] for parameter in taken if parameter["required"]}
        whole = re.sub(r"\{\w+}", "1", path)
        for params in ({}, *({name: value} for name, value in given.items()), given):
            yield whole, needed | params


def example_of(path: str, name: str) -> str:
    example = EXAMPLES.get(f"{path} {name}", EXAMPLES.get(name))
    assert example is not None, f"give EXAMPLES a value for the parameter {name} of {path}"
    return example


def test_every_command_that_reads_runs_along_an_index(
    watched: Desk, database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(catchment.store.store, "Database", lambda *_, **__: watched.store.database)
    monkeypatch.setenv("CATCHMENT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("CATCHMENT_DATABASE_URL", database_url)
    monkeypatch.chdir(tmp_path)
    found = {}
    for command in all_commands():
        told = told_by(watched, lambda command=command: cli_run(command))  # type: ignore[misc]
        found |= {(*command, sql): faults for sql, faults in faults_of(watched, told).items()}
    assert found == {}


def all_commands() -> Iterator[list[str]]:
    """Every command that reads: as it is, and with each of its options."""
    for name, command in every_command(commands(is_loaded=True)):
        assert name in READING or name.split()[-1] in NOT_READING, f"does `{name}` list something?"
        if name not in READING:
            continue
        given = [
            [EXAMPLES[parameter.name or ""]] for parameter in command.params if parameter.param_type_name == "argument"
        ]
        begun = [*name.split(), *(value for values in given for value in values)]
        yield begun
        for parameter in command.params:
            if parameter.param_type_name == "option" and parameter.opts[0] != "--help":
                value = [] if getattr(parameter, "is_flag", False) else [example_of(name, parameter.opts[0].strip("-"))]
                yield [*begun, parameter.opts[0], *value]


def every_command(command: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    for word, below in getattr(command, "commands", {}).items():
        yield from every_command(below, f"{name} {word}".strip())
    if not hasattr(command, "commands"):
        yield name, command


# ── what the database makes of it ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT id FROM items",
        "SELECT count(*) FROM items",
        "SELECT max(applied_at) FROM items",
        "SELECT id FROM items ORDER BY score DESC LIMIT 3",
        "SELECT id FROM items WHERE author = 'nobody' ORDER BY ordered_at DESC, id DESC LIMIT 3",
        "SELECT item_id FROM sightings ORDER BY last_seen_at DESC LIMIT 3",
        "SELECT DISTINCT author FROM items",
        "SELECT id FROM gaps WHERE source_id = 1 ORDER BY from_at LIMIT 3",
    ],
)
def test_a_question_without_an_index_is_noticed(watched: Desk, sql: str) -> None:
    is_postgres = watched.store.database.is_postgres
    # SQLite does not tell what it looks at in vain along an index.
    assert faults_of(watched, [(sql, ())]) or (not is_postgres and "author = " in sql)


def told_by(desk: Desk, action: Callable[[], object]) -> list[Statement]:
    database = desk.store.database
    assert isinstance(database, WatchingDatabase)
    database.told.clear()
    action()
    return list(database.told)


def faults_of(desk: Desk, told: list[Statement]) -> dict[str, list[str]]:
    read = postgres_faults if desk.store.database.is_postgres else sqlite_faults
    once = {sql: values for sql, values in told if sql.split(maxsplit=1)[0] in EXPLAINABLE}
    return {sql: faults for sql, values in once.items() if (faults := read(desk, sql, values))}


def sqlite_faults(desk: Desk, sql: str, values: tuple[Any, ...]) -> list[str]:
    """Steps that read a whole table or index, or sort what no LIMIT of ours bounds."""
    steps = [row[3] for row in desk.store.database.read(lambda tx: tx.all(f"EXPLAIN QUERY PLAN {sql}", *values))]
    # For the largest or smallest value SQLite calls a scan a search, one that uses nothing.
    # A list of values that is passed in is read to its end; no table of the archive is.
    steps = [step for step in steps if not step.startswith("SCAN wanted VIRTUAL TABLE")]
    whole = [step for step in steps if step.startswith("SCAN") or (step.startswith("SEARCH") and "USING" not in step)]
    scanned = [step for step in whole if not may_be_scanned(step, sql)]
    sorts = [step for step in steps if "ORDER BY" in step]
    is_harmless = is_bounded(sql) or not steps or is_called(steps[0].split()[1], SMALL, sql)
    return scanned + ([] if is_harmless else sorts)


def may_be_scanned(step: str, sql: str) -> bool:
    name, index = step.split()[1], step.partition(" INDEX ")[2].split(" ")[0]
    if step.startswith("SEARCH") and "max(id)" in sql:
        return True
    if name in {"CONSTANT", "LIST"} or is_called(name, SMALL, sql):
        return True
    return bool(index) and (index in PARTIAL or "LIMIT" in sql or is_called(name, FOLLOWED, sql))


def is_called(name: str, tables: set[str], sql: str) -> bool:
    return name in tables or any(f"{table} {name}" in sql or f"{table} AS {name}" in sql for table in tables)


def is_bounded(sql: str) -> bool:
    """It asks for what belongs to the few items of a page, or to one item, or source; or takes what is rare whole."""
    return " IN (?" in sql or "= ANY(" in sql or "AS MATERIALIZED" in sql


def postgres_faults(desk: Desk, sql: str, values: tuple[Any, ...]) -> list[str]:
    """What is left of whole scans and sorts where the planner is told to avoid them at any price."""

    def question(tx: Any) -> Any:
        for dear in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "sort"):
            if dear == "bitmapscan" and "@@" in sql:
                # An index of words answers in bitmaps only.
                continue
            if dear == "sort" and is_bounded(sql):
                # To avoid the sort of a few rows, the planner would rather walk the whole of another index.
                continue
            tx.run(f"SET LOCAL enable_{dear} = off")
        tx.cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", values)
        return tx.cursor.fetchone()[0][0]["Plan"]

    nodes = list(every_node(desk.store.database.write(question)))
    scanned = [f"{node['Node Type']} {node['Relation Name']}" for node in nodes if is_whole_scan(node)]
    sorts = [node["Node Type"] for node in nodes if "Sort" in node["Node Type"] and sorted_tables(node) - SMALL]
    filtered = [f"{node['Relation Name']} filtered by {node['Filter']}" for node in nodes if is_filtered(node)]
    return scanned + ([] if is_bounded(sql) else sorts + filtered)


def is_filtered(node: dict[str, Any]) -> bool:
    """Whether a list looks at rows that it may not show: how many, no index bounds."""
    is_walk = "Filter" in node and "Index Cond" not in node and node["is limited"]
    return (
        is_walk
        and node.get("Index Name") not in PARTIAL
        and node.get("Relation Name", "told") not in SMALL | FOLLOWED | GONE_THROUGH
    )


def sorted_tables(node: dict[str, Any]) -> set[str]:
    """Whose rows come into a step; not those that are asked about each."""
    below = [plan for plan in node.get("Plans", ()) if plan.get("Parent Relationship") != "SubPlan"]
    return {node["Relation Name"]} if "Relation Name" in node else set[str]().union(*map(sorted_tables, below))


def is_whole_scan(node: dict[str, Any]) -> bool:
    table = node.get("Relation Name")
    if table is None or table in SMALL:
        return False
    if node["Node Type"] == "Seq Scan":
        return True
    is_whole = node["Node Type"].startswith("Index") and "Index Cond" not in node
    return is_whole and not node["is limited"] and node["Index Name"] not in PARTIAL and table not in FOLLOWED


def every_node(plan: dict[str, Any], is_limited: bool = False) -> Iterator[dict[str, Any]]:
    """The steps of a plan, each with whether it stands below a limit."""
    yield plan | {"is limited": is_limited}
    for below in plan.get("Plans", ()):
        yield from every_node(below, is_limited or plan["Node Type"] == "Limit")
