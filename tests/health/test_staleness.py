"""Silence: of one source, or of its whole platform; its canary tells which."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from catchment.health.monitors import (
    PostingRhythm,
    StaleSource,
    canaries_among,
    silence_alerts,
)

NOW = datetime(2026, 1, 2, tzinfo=UTC)
HOUR = timedelta(hours=1)


def follows(number: int, patience: float, silent_for: float, platform: str = "reddit") -> PostingRhythm:
    """A source that may be silent for so many hours, and has been for so many."""
    newest = NOW - silent_for * HOUR
    return PostingRhythm(number, f"r/{number}", platform, newest + patience * HOUR, newest, newest)


def told(*followed: PostingRhythm, named: dict[str, int] | None = None) -> dict[str, str]:
    late = [
        StaleSource(source.source_id, source.name, source.platform, source.expected_by)
        for source in followed
        if source.expected_by < NOW
    ]
    alarms = silence_alerts(late, followed, canaries_among(followed, {"reddit"}, named or {}))
    return {alert.subject: alert.message for alert in alarms}


def test_the_canary_is_the_busiest_of_a_platform_with_hosts_of_its_own_or_the_one_that_is_named() -> None:
    followed = [follows(1, 9, 1), follows(2, 2, 1), follows(3, 5, 1), follows(4, 1, 1, "feeds")]
    assert {name: canary.source_id for name, canary in canaries_among(followed, {"reddit"}, {}).items()} == {
        "reddit": 2
    }
    by_name = canaries_among(followed, {"reddit"}, {"reddit": 3, "feeds": 4})
    assert {name: canary.source_id for name, canary in by_name.items()} == {"reddit": 3, "feeds": 4}
    assert canaries_among(followed, {"reddit"}, {"reddit": 99})["reddit"].source_id == 2


def test_while_the_canary_sings_a_silent_source_is_alone() -> None:
    alerts = told(follows(1, 2, 1), follows(2, 9, 10))
    assert list(alerts) == ["source 2 silent"]
    assert "reddit itself works (r/1 shows new items)" in alerts["source 2 silent"]


def test_when_the_canary_falls_silent_and_nobody_else_sings_it_is_the_platform() -> None:
    alerts = told(follows(1, 2, 3), follows(2, 9, 4))
    assert list(alerts) == ["platform reddit silent"], "though the other one is not late yet"
    assert "down, or blocks us" in alerts["platform reddit silent"]
    assert "r/1 (source 1)" in alerts["platform reddit silent"]


def test_a_silent_canary_whose_neighbours_sing_is_a_silent_source() -> None:
    alerts = told(follows(1, 2, 3), follows(2, 9, 1))
    assert list(alerts) == ["source 1 silent"]
    assert "itself works" not in alerts["source 1 silent"]


@pytest.mark.parametrize("silent_for", [3, 30])
def test_where_sources_bring_their_own_hosts_one_says_nothing_about_the_others(silent_for: float) -> None:
    followed = [follows(1, 2, silent_for, "feeds"), follows(2, 90, 40, "feeds")]
    assert list(told(*followed)) == ["source 1 silent"]


def test_all_sources_silent_is_one_alert_wherever_they_lie() -> None:
    followed = [follows(number, 2, 3, "feeds") for number in range(1, 4)]
    assert list(told(*followed)) == ["platform feeds silent"]
