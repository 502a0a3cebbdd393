"""`watches`: rules over what comes in."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, Limit, countable
from catchment.model import Watch

if TYPE_CHECKING:
    from catchment.store import Store

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Rules over new items, which make events.")

# A word may begin with a minus sign: what looks like an option and is none of ours is one of them.
_WITH_MINUS = {"ignore_unknown_options": True}

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the watch is called.")]
Words = Annotated[
    list[str] | None, typer.Argument(metavar="WORDS", help="What must occur; -WORD: what must not occur.")
]
AnyWord = Annotated[bool, typer.Option("--any", help="One of the words is enough.")]
OfKind = Annotated[list[str] | None, typer.Option("--kind", metavar="KIND", help="Only of this kind. May be repeated.")]
FromSource = Annotated[
    list[int] | None,
    typer.Option("--source", metavar="ID", callback=countable, help="Only of this source. May be repeated."),
]
ByAuthor = Annotated[list[str] | None, typer.Option("--author", metavar="NAME", help="Only by them. May be repeated.")]


@app.command(context_settings=_WITH_MINUS)
def add(
    name: Name,
    words: Words = None,
    any_word: AnyWord = False,
    kind: OfKind = None,
    source: FromSource = None,
    author: ByAuthor = None,
    edits: Annotated[bool, typer.Option("--edits", help="Also items that change, not only new ones.")] = False,
    as_json: AsJson = False,
) -> None:
    """Watch for something in what comes in from now on.

    Whole words, regardless of case; Chinese, Japanese and Korean anywhere, from one character on. All words must occur,
    unless --any is given. What fits becomes an event (watch.matched), and is shown by `catchment watches show`.
    """
    with doors.opened_store(doors.settings()) as (store, now):
        from catchment.tell.rules import checked

        watch = checked(_watch(name, words, any_word, kind, source, author).plus(is_for_edits=edits))
        _check_names(store, watch)
        shown = store.watches.get(store.watches.add(watch, now))
    if as_json:
        showing.document(shown)
    else:
        showing.say(f"watch {name}: {_rule(shown)}, from now on")


def _check_names(store: Store, watch: Watch) -> None:
    doors.names(store).checked_watch(watch)
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


def _rule(shown: dict[str, Any]) -> str:
    words = (" or " if shown["is_any_enough"] else " ").join(shown["words"])
    limits = (("kinds", "of kind"), ("source_ids", "from source"), ("authors", "by"))
    parts = [words, *(f"{said} {', '.join(map(str, shown[key]))}" for key, said in limits if shown[key])]
    return "; ".join(part for part in parts if part) + ("; edits too" if shown["is_for_edits"] else "")


@app.command(name="list")
def list_watches(as_json: AsJson = False) -> None:
    """List the watches and how often they hit."""
    with doors.opened_store(doors.settings()) as (store, now):
        found = store.watches.page()
    if as_json:
        showing.document(found)
        return
    showing.table(
        ("name", "looks for", "state", "#hits", "last hit"),
        (
            (
                one["name"],
                _rule(one),
                "active" if one["is_active"] else "paused",
                one["hit_count"],
                showing.when(one["last_hit_at"], now),
            )
            for one in found
        ),
    )


@app.command()
def show(name: Name, limit: Limit = 20, as_json: AsJson = False) -> None:
    """Show one watch and what it hit last."""
    with doors.opened_store(doors.settings()) as (store, now):
        watch_id = store.watches.id_of(name)
        shown, hits = store.watches.get(watch_id), store.watches.hits(watch_id, limit)
    if as_json:
        showing.document(shown | {"hits": hits})
        return
    showing.facts(
        (
            ("watch", shown["name"]),
            ("looks for", _rule(shown)),
            ("state", "active" if shown["is_active"] else "paused"),
            ("since", showing.at(shown["created_at"], now)),
            ("hits", shown["hit_count"]),
        )
    )
    _show_hits(hits, now)


def _show_hits(hits: Sequence[dict[str, Any]], now: datetime) -> None:
    showing.table(
        ("#item", "when", "words", "title", "address"),
        (
            (str(one["item_id"]), showing.when(one["matched_at"], now), one["words"], one["title"], one["url"])
            for one in hits
        ),
    )


@app.command(name="try", context_settings=_WITH_MINUS)
def try_words(
    words: Words = None,
    any_word: AnyWord = False,
    kind: OfKind = None,
    source: FromSource = None,
    author: ByAuthor = None,
    among: Annotated[
        int, typer.Option(metavar="N", min=1, max=100_000, help="How many of the latest items to look at.")
    ] = 1000,
    as_json: AsJson = False,
) -> None:
    """Show what a watch would have hit among the latest items.

    Nothing is kept, and nobody is told.
    """
    with doors.opened_store(doors.settings()) as (store, _):
        from catchment.tell.rules import checked
        from catchment.tell.watching import tried

        watch = checked(_watch("try", words, any_word, kind, source, author))
        _check_names(store, watch)
        hits, looked = tried(store.watches, watch, among)
    shown = [
        {
            "item_id": one.item.id,
            "title": one.item.title,
            "url": one.item.url,
            "words": one.words,
        }
        for one in hits
    ]
    if as_json:
        showing.document(shown)
        return
    showing.table(
        ("#item", "words", "title", "address"),
        ((str(one["item_id"]), one["words"], one["title"], one["url"]) for one in shown),
    )
    showing.say(f"{showing.counted(len(shown), 'hit')} among the latest {showing.counted(looked, 'item')}")


@app.command()
def pause(name: Name, as_json: AsJson = False) -> None:
    """Look at nothing until it is resumed."""
    with doors.opened_store(doors.settings()) as (store, _):
        watch_id = store.watches.id_of(name)
        store.watches.pause(watch_id)
        shown = store.watches.get(watch_id)
    _show_changed(shown, as_json)


@app.command()
def resume(name: Name, as_json: AsJson = False) -> None:
    """Look again, at what comes from now on."""
    with doors.opened_store(doors.settings()) as (store, _):
        watch_id = store.watches.id_of(name)
        store.watches.resume(watch_id)
        shown = store.watches.get(watch_id)
    _show_changed(shown, as_json)


def _show_changed(shown: dict[str, Any], as_json: bool) -> None:
    if as_json:
        showing.document(shown)
    else:
        showing.say(f"watch {shown['name']} is {'active' if shown['is_active'] else 'paused'}")


@app.command()
def remove(name: Name, as_json: AsJson = False) -> None:
    """Forget a watch and its hits; the items stay."""
    with doors.opened_store(doors.settings()) as (store, _):
        store.watches.remove(store.watches.id_of(name))
    if as_json:
        showing.document({"name": name})
    else:
        showing.say(f"watch {name} is gone")
