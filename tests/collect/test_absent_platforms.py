"""Kinds whose platform is not installed: kept, shown as such, skipped; and collected once there is a platform."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from catchment.errors import InvalidInput
from catchment.model import (
    Answer,
    Field,
    Item,
    Kind,
    Listing,
    Order,
    Outcome,
    Reading,
    Request,
    Source,
    Target,
)
from catchment.platforms import Platforms
from catchment.sources.add import change, follow
from catchment.sources.describe import health_of, source_view
from tests.playing import played
from tests.town import TownApp

HOUR = timedelta(hours=1)


def added(here: TownApp, target: str, kind: str = "xhs_keyword", **more: Any) -> Source:
    app = here.app
    return follow(app.store, app.secrets, app.platforms, kind, target, here.clock.now(), **more)[0]


def understand(text: str, kind: str | None = None) -> Target:
    if not text.lstrip("@").isalnum():
        raise InvalidInput(f"{text!r} is no user", "as @NAME", field="target")
    return Target("xhs_keyword", text.lstrip("@").lower(), f"@{text.lstrip('@')}")


def a_platform(here: TownApp) -> Any:
    """What a package might bring: users, whose names it writes in its own way."""
    listing = Listing("timeline", Order.NEWEST_FIRST)
    fields = (Field("limit", "how many", minimum=1, maximum=100),)
    kind = Kind("xhs_keyword", "A user", 30, "@nasa", (listing,), fields)
    url = "https://x.example/{target}"
    return played(
        NAME="xiaohongshu",
        KINDS=(kind,),
        HOSTS=(),
        understand=understand,
        first=lambda source, progress, ask: [Request(url.format(target=source.target), listing=ask.listing)],
        read=lambda answer, request: Reading((Item("1", "tweet", here.clock.now(), text="hello"),), is_end=True),
    )


def install(here: TownApp) -> None:
    """Another process, after the platform was installed."""
    here.app.close()
    here.app = here.another("test")
    here.app.platforms = Platforms((*here.app.platforms, a_platform(here)))
    for target in ("nasa", "esa"):
        feed = here.town.feed(f"x-{target}")
        here.town.feeds[f"https://x.example/{target}"] = feed
        feed.says.append(lambda request, now: Answer(200, {}, b"{}", request.url, now))


@pytest.mark.parametrize(("kind", "platform"), [("xhs_note", "xiaohongshu"), ("xhs_keyword", "xiaohongshu")])
def test_a_known_kind_without_a_platform_is_kept_and_says_so(quick: TownApp, kind: str, platform: str) -> None:
    source = added(quick, " some  thing ", kind, interval_minutes=90)
    assert (source.kind, source.platform, source.target) == (kind, platform, "some thing")
    _, progress = quick.app.store.sources.with_progress(source.id)
    assert health_of(source, progress, 5) == "no_platform"
    shown = source_view(source, progress, quick.app.intervals())
    assert (shown.has_platform, shown.note) == (False, f"no platform is installed for kind {kind!r}")


def test_an_unknown_word_stays_an_error_that_names_what_is_known(quick: TownApp) -> None:
    with pytest.raises(InvalidInput, match=r"unknown kind 'xhs_keywords' — did you mean xhs_keyword\?"):
        added(quick, "@nasa", "xhs_keywords")
    for target in ("", " ", "a\0b", "x" * 3000):
        with pytest.raises(InvalidInput):
            added(quick, target)


def test_such_a_source_is_skipped_and_its_settings_may_be_changed(here: TownApp) -> None:
    source = added(here, "@NASA", settings={"limit": "50"})
    (result,) = here.collect()
    assert (result.outcome, result.error) == (Outcome.SKIPPED, None)
    assert result.notes == ("no platform is installed for kind 'xhs_keyword'",)
    app = here.app
    shown = source_view(*app.store.sources.with_progress(source.id), app.intervals())
    assert (shown.last_fetched_at, shown.fetch_stats.last_fetch_at) == (None, None)
    changed = change(app.store, app.secrets, app.platforms, source.id, here.clock.now(), settings={"limit": "60"})
    assert changed.settings == {"limit": "60"}


def test_once_the_platform_is_installed_its_target_is_checked_and_collected(here: TownApp) -> None:
    source = added(here, "@NASA", settings={"limit": "50"})
    wrong = added(here, "not a user!")
    here.collect()
    install(here)
    good, bad = sorted(here.collect(after=HOUR), key=lambda result: result.source_id)
    assert (good.source_id, good.outcome, good.counts.new, good.error) == (source.id, Outcome.SUCCEEDED, 1, None)
    now = here.app.store.sources.get(source.id)
    assert (now.target, now.settings, now.key) == ("nasa", {"limit": 50}, source.key)
    assert (bad.source_id, bad.outcome, bad.error_code) == (wrong.id, Outcome.FAILED, "INVALID_INPUT")
    assert "is no user" in str(bad.error)


def test_a_target_that_another_source_follows_already_is_told_as_that(quick: TownApp) -> None:
    added(quick, "@NASA")
    twin = added(quick, "nasa")
    install(quick)
    results = {result.source_id: result for result in quick.collect()}
    assert sorted(str(result.outcome) for result in results.values()) == ["failed", "succeeded"]
    assert twin.id in results
    (failed,) = [result for result in results.values() if result.outcome == Outcome.FAILED]
    assert failed.error_code == "CONFLICT"
