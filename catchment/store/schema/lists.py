"""What lists need beside the tables themselves: further orders to walk along, and counts that nobody has to count."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, ForeignKey, Index, Table, Text, text

from catchment.store.schema.base import Moment, metadata
from catchment.store.schema.spine import items, sightings, sources

# In the order of fetching, of all sources and of each: what came since the last digest, whatever date it bears.
Index(None, items.c.first_seen_at, items.c.id)
Index(None, sightings.c.source_id, sightings.c.first_seen_at, sightings.c.item_id)

# What was said in a thread, oldest first.
Index(
    "ix_items_thread",
    items.c.platform,
    items.c.scope,
    items.c.thread_id,
    items.c.ordered_at,
    items.c.id,
    sqlite_where=text("thread_id IS NOT NULL"),
    postgresql_where=text("thread_id IS NOT NULL"),
)

# What a reply answers in the end.
Index(
    "ix_items_heads",
    items.c.platform,
    items.c.scope,
    items.c.thread_id,
    sqlite_where=text("is_head"),
    postgresql_where=text("is_head"),
)

replied = Table(
    "replied",
    metadata,
    # As in sightings: the key is at once the list. Which one: all, or as facets are called (platform:…, kind:…), or
    # that of a source (source:…).
    Column("list", Text, primary_key=True),
    Column("last_reply_at", Moment, primary_key=True, autoincrement=False),
    Column("item_id", BigInteger, primary_key=True, autoincrement=False),
    Index(None, "item_id", "list", "last_reply_at"),
    sqlite_with_rowid=False,
)
"""Items whose last reply is known, by its time: each stands in every list that has it, and moves in all of them at
once. Always written with the item's own `last_reply_at`."""

# How many sources use a credential.
Index(
    "ix_sources_credential",
    sources.c.credential,
    sqlite_where=text("credential IS NOT NULL"),
    postgresql_where=text("credential IS NOT NULL"),
)

# Which platforms there are.
Index(None, sources.c.platform)

source_counts = Table(
    "source_counts",
    metadata,
    Column("source_id", ForeignKey("sources.id"), primary_key=True, autoincrement=False),
    Column("item_count", BigInteger, nullable=False),
)
"""How many items each source has shown: as many as it has sightings, and always written with them."""
