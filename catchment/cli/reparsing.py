"""`reparse`: kept answers, read again by a better reader."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from catchment.cli import doors, showing
from catchment.cli.given import AsJson, OfSource, Since
from catchment.cli.stopping import Stopping
from catchment.errors import InvalidInput

if TYPE_CHECKING:
    from catchment.collect.reparse import Reparsed
    from catchment.shop import Shop
    from catchment.store.mending import Wanted


def reparse(
    source: OfSource = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", help="Only those of sources of this kind.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Those of all sources.")] = False,
    since: Since = None,
    again: Annotated[
        bool, typer.Option("--again", help="Those, too, that the present reader has read already.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what it would come to.")] = False,
    as_json: AsJson = False,
) -> int:
    """Read kept answers again with the present reader.

    Nobody is asked again. Each answer corrects the version of an item that it produced, and is dated as it was
    then; what had been made of it before stays in the item's history, with the reason `parser_mended`. Items that
    could not be read until now are added. It may be stopped at any time, and goes on where it was.
    """
    if sum((source is not None, kind is not None, everything)) != 1:
        raise InvalidInput("which answers are to be read again?", "give one of --source ID, --kind KIND and --all")
    with Stopping() as stopping, doors.opened_shop("reparse") as shop:
        stopping.watch(shop.stop, shop.cut, shop.settings.stop_seconds, showing.note)
        if source is not None:
            shop.store.sources.get(source, even_removed=True)
        if kind is not None:
            shop.platforms.needed(kind)
        done = _reparsed(shop, source, kind, since, again, dry_run, as_json)
    if as_json:
        showing.document(_told(done, dry_run))
    else:
        _show(done, dry_run)
    return 1 if done.is_cut_off else 0


def _reparsed(
    shop: Shop,
    source: int | None,
    kind: str | None,
    since: datetime | None,
    again: bool,
    dry_run: bool,
    as_json: bool,
) -> Reparsed:
    from catchment.collect.reparse import Reparsing

    limit, now = shop.settings.text_limit, shop.clock.now()
    reparsing = Reparsing(shop.store, shop.platforms, limit, shop.stop, now, is_dry=dry_run)
    wanted: Wanted = reparsing.wanted(source, kind, since, again)
    total = shop.store.mending.count(wanted)
    with showing.bar("reading again", total, is_shown=showing.is_watched() and not as_json) as bar:
        return reparsing.run(
            wanted, lambda one: bar.move(one.answers, f"{one.done.new:,} new · {one.done.mended:,} mended")
        )


def _told(done: Reparsed, dry_run: bool) -> dict[str, object]:
    return {
        "answers": done.answers,
        "unreadable": done.unreadable,
        "new": done.done.new,
        "mended": done.done.mended,
        "details": done.done.details,
        "is_dry_run": dry_run,
        "is_cut_off": done.is_cut_off,
    }


def _show(done: Reparsed, dry_run: bool) -> None:
    if not done.answers:
        showing.say("No kept answer waits for a better reader.")
        return
    would = "would be " if dry_run else ""
    showing.say(
        f"{showing.counted(done.answers, 'answer')} read again: {done.done.mended:,} versions {would}mended, "
        f"{showing.counted(done.done.new, 'item')} {would}added, {done.done.details:,} {would}corrected in details"
    )
    if done.unreadable:
        showing.say(f"{showing.counted(done.unreadable, 'answer')} could not be read; kept for a better reader")
    if done.is_cut_off:
        showing.note("stopped before the end; the same command goes on from here")
