"""`watches`: keyword rules over incoming items."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from catchment.cli import context, output
from catchment.cli.params import AsJson, Limit, countable
from catchment.events.watches import checked, tried
from catchment.model import Watch, as_dict
from catchment.store import Store
from catchment.store.delivery.watches import WatchView

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the watch.")]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="WORDS", help="Words that must occur; -WORD for one that must not.")
]
AnyWord = Annotated[bool, typer.Option("--any", help="Match items with any of the words.")]
OfKind = Annotated[
    list[str] | None, typer.Option("--kind", metavar="KIND", help="Only items of this kind. May be repeated.")
]
FromSource = Annotated[
    list[int] | None,
    typer.Option("--source", metavar="ID", callback=countable, help="Only items from this source. May be repeated."),
]
ByAuthor = Annotated[
    list[str] | None, typer.Option("--author", metavar="NAME", help="Only items by this author. May be repeated.")
]


def add(
    name: Name,
    words: Words = None,
    any_word: AnyWord = False,
    kind: OfKind = None,
    source: FromSource = None,
    author: ByAuthor = None,
    edits: Annotated[bool, typer.Option("--edits", help="Match edited items, too, not only new ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """Applies to items collected from now on. Matches whole words in any case; in Chinese, Japanese and Korean, any
    part of the text, even one character. All words must occur, unless --any is given. A match becomes the event
    watch.matched, and is listed by `catchment watches show`.
    """
    with context.opened_store(context.settings(), creates=True) as (store, now):
        watch = checked(_watch(name, words, any_word, kind, source, author).replace(is_for_edits=edits))
        _check_names(store, watch)
        shown = store.watches.get(store.watches.add(watch, now))
    output.result(as_json, shown, f"Watch {name} added: {_rule(shown)}")


def _check_names(store: Store, watch: Watch) -> None:
    context.names(store).checked_watch(watch)
    for source_id in watch.source_ids:
        store.sources.get(source_id)


def _watch(
    name: str,
    words: Sequence[str] | None,
    any_word: bool,
    kinds: Sequence[str] | None,
    sources: Sequence[int] | None,
    authors: Sequence[str] | None,
) -> Watch:
    return Watch(
        name,
        tuple(dict.fromkeys(words or ())),
        any_word,
        tuple(kinds or ()),
        tuple(sources or ()),
        tuple(authors or ()),
    )


def _rule(watch: WatchView) -> str:
    words = (" or " if watch.is_any_enough else " ").join(watch.words)
    limits = (("of kind", watch.kinds), ("from source", watch.source_ids), ("by", watch.authors))
    parts = [words, *(f"{label} {', '.join(map(str, values))}" for label, values in limits if values)]
    return "; ".join(part for part in parts if part) + ("; edits too" if watch.is_for_edits else "")


def list_watches(as_json: AsJson = False) -> None:
    with context.opened_store(context.settings()) as (store, now):
        watches = store.watches.page()
    output.listing(
        as_json,
        watches,
        ("Name", "Rule", "State", "#Matches", "Last match"),
        lambda watch: (
            watch.name,
            _rule(watch),
            _state(watch),
            watch.hit_count,
            output.when(watch.last_hit_at, now),
        ),
        empty=(
            "no watches yet",
            "run `catchment watches add NAME WORDS`, or `catchment watches try WORDS` to test words first",
        ),
    )


def _state(watch: WatchView) -> str:
    return "active" if watch.is_active else "paused"


def show(name: Name, limit: Limit = 20, as_json: AsJson = False) -> None:
    with context.opened_store(context.settings()) as (store, now):
        watch_id = store.watches.id_of(name)
        shown, hits = store.watches.get(watch_id), store.watches.hits(watch_id, limit)
    if as_json:
        output.document(as_dict(shown) | {"hits": hits})
        return
    output.facts(
        (
            ("Watch", shown.name),
            ("Rule", _rule(shown)),
            ("State", _state(shown)),
            ("Added", output.at(shown.created_at, now)),
            ("Matches", shown.hit_count),
        )
    )
    output.say()
    output.table(
        ("#Item", "When", "Words", "Title", "Address"),
        ((str(hit.item_id), output.when(hit.matched_at, now), hit.words, hit.title, hit.url) for hit in hits),
    )


def try_words(
    words: Words = None,
    any_word: AnyWord = False,
    kind: OfKind = None,
    source: FromSource = None,
    author: ByAuthor = None,
    among: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="How many of the latest items to test.")
    ] = 1000,
    as_json: AsJson = False,
) -> None:
    """Stores nothing, and sends no event."""
    with context.opened_store(context.settings()) as (store, _):
        watch = checked(_watch("try", words, any_word, kind, source, author))
        _check_names(store, watch)
        hits, count = tried(store.watches, watch, among)
    if as_json:
        output.document(
            [{"item_id": hit.item.id, "title": hit.item.title, "url": hit.item.url, "words": hit.words} for hit in hits]
        )
        return
    output.table(
        ("#Item", "Words", "Title", "Address"),
        ((str(hit.item.id), hit.words, hit.item.title, hit.item.url) for hit in hits),
    )
    matches = "1 match" if len(hits) == 1 else f"{len(hits):,} matches"
    output.say(f"{matches} in the latest {output.counted(count, 'item')}")


def pause(name: Name, as_json: AsJson = False) -> None:
    _switch(name, is_on=False, as_json=as_json)


def resume(name: Name, as_json: AsJson = False) -> None:
    _switch(name, is_on=True, as_json=as_json)


def _switch(name: str, *, is_on: bool, as_json: bool) -> None:
    with context.opened_store(context.settings()) as (store, _):
        watch_id = store.watches.id_of(name)
        (store.watches.resume if is_on else store.watches.pause)(watch_id)
        shown = store.watches.get(watch_id)
    output.result(as_json, shown, f"Watch {shown.name} is {_state(shown)}.")


def remove(name: Name, as_json: AsJson = False) -> None:
    with context.opened_store(context.settings()) as (store, _):
        store.watches.remove(store.watches.id_of(name))
    output.result(as_json, {"name": name}, f"Watch {name} has been removed.")
