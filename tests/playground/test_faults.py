"""The plan of faults: the same for the same seed, as often as asked for, and scriptable."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from catchment.errors import InvalidInput
from catchment.playground.faults import (
    FAULTS,
    REDDIT_FAULTS,
    Cue,
    FaultPlan,
    Wire,
    refused,
    spoiled,
)
from catchment.playground.sites import (
    STRAIGHT,
    Ask,
    Entry,
    Page,
)

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)
PROMISED = {
    *("login_needed", "forbidden", "missing", "gone", "slow_down", "slow_down_until", "slow_down_somehow"),
    *("server_error", "bad_gateway", "unavailable", "unavailable_for", "slow_first_byte", "slow_drip", "reset"),
    *("cut_body", "torn_body", "gzip_garbage", "malformed", "empty", "html_page", "captcha", "stale", "reordered"),
    *("repeated", "clock_skew", "looping_cursor", "outage"),
}


def drawn(faults: FaultPlan, requests: int = 5_000, path: str = "/feeds/1.json") -> list[str | None]:
    found = (faults.of(path, None, number, AT) for number in range(1, requests + 1))
    return [fault.name if fault else None for fault in found]


def test_every_promised_fault_has_a_name_and_a_sentence() -> None:
    assert set(FAULTS) == PROMISED
    assert all(fault.what for fault in FAULTS.values())


def test_the_same_seed_draws_the_same_faults_and_another_seed_others() -> None:
    assert drawn(FaultPlan(1, 0.3)) == drawn(FaultPlan(1, 0.3))
    assert drawn(FaultPlan(1, 0.3)) != drawn(FaultPlan(2, 0.3))


def test_each_path_and_each_credential_meets_its_own_faults() -> None:
    faults = FaultPlan(1, 0.5)
    anonymous, other = ([faults.of("/a", who, number, AT) for number in range(50)] for who in (None, "someone"))
    assert anonymous != other
    assert drawn(faults, 50, "/a") != drawn(faults, 50, "/b")


@pytest.mark.parametrize("rate", [0.0, 0.2, 1.0])
def test_faults_come_as_often_as_asked_for(rate: float) -> None:
    names = drawn(FaultPlan(3, rate, outage_rate=0.0))
    assert abs(sum(name is not None for name in names) / len(names) - rate) < 0.02


def test_every_fault_is_drawn_except_those_that_are_for_good_or_for_hosts() -> None:
    counted = Counter(drawn(FaultPlan(3, 1.0, outage_rate=0.0)))
    assert set(counted) == PROMISED - {"gone", "outage"}
    assert min(counted.values()) > 20


def test_only_forms_that_have_a_cursor_get_one_that_loops() -> None:
    assert "looping_cursor" not in drawn(FaultPlan(3, 1.0), path="/feeds/1.xml")


def test_faults_of_one_platform_meet_nobody_else() -> None:
    there = set(drawn(FaultPlan(3, 1.0, outage_rate=0.0), path="/r/notes/new"))
    assert there & REDDIT_FAULTS.keys() == {"challenge", "truncated", "deleted_anchor"}
    assert set(drawn(FaultPlan(3, 1.0), path="/feeds/1.xml")) & REDDIT_FAULTS.keys() == set()
    assert drawn(FaultPlan(script=[Cue("private", path="/r/notes/*")]), 3, "/r/notes/new") == ["private"] * 3


def test_an_outage_holds_for_the_whole_hour_and_for_one_host() -> None:
    faults = FaultPlan(3, outage_rate=0.2)

    def is_out(host: str, at: datetime) -> bool:
        return faults.of("/any", None, 1, at, host) is not None

    hours = [AT + timedelta(hours=hour) for hour in range(200)]
    out = [is_out("a", hour) for hour in hours]
    assert 20 < sum(out) < 60
    assert out != [is_out("b", hour) for hour in hours]
    for hour, is_hour_out in zip(hours, out, strict=True):
        assert {is_out("a", hour + timedelta(minutes=minute)) for minute in (0, 29, 59)} == {is_hour_out}


# ── by script ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_cue_calls_its_fault_for_its_paths_and_its_requests_only() -> None:
    faults = FaultPlan(script=[Cue("captcha", path="/feeds/1.*", first=2, last=3)])
    assert drawn(faults, 5) == [None, "captcha", "captcha", None, None]
    assert drawn(faults, 5, "/feeds/2.xml") == [None] * 5


def test_a_cue_calls_its_fault_during_its_time_only() -> None:
    faults = FaultPlan(script=[Cue("gone", from_at=AT, to_at=AT + timedelta(hours=1))])
    minutes = (-1, 0, 59, 60)
    found = [faults.of("/a", None, 1, AT + timedelta(minutes=minute)) for minute in minutes]
    assert [fault.name if fault else None for fault in found] == [None, "gone", "gone", None]


def test_a_cue_may_be_for_one_host_or_one_credential() -> None:
    faults = FaultPlan(script=[Cue("reset", host="a.*"), Cue("login_needed", credential="mine")])
    asked = [("a.localhost", None), ("b.localhost", None), ("b.localhost", "mine")]
    found = [faults.of("/x", credential, 1, AT, host) for host, credential in asked]
    assert [fault.name if fault else None for fault in found] == ["reset", None, "login_needed"]


def test_cues_come_before_draws() -> None:
    assert set(drawn(FaultPlan(1, 1.0, [Cue("empty")]))) == {"empty"}


def test_a_cue_for_an_unknown_fault_says_which_there_are() -> None:
    with pytest.raises(InvalidInput, match="clock_skew"):
        FaultPlan(script=[Cue("sulking")])


# ── what they do ──────────────────────────────────────────────────────────────────────────────────────────────────

RSS = Page(
    200,
    {"Content-Type": "application/rss+xml; charset=utf-8", "ETag": '"x"'},
    b"<rss><channel><title>A</title><item><title>B</title></item></channel></rss>",
    packed=b"packed",
    entries=(Entry("p1-1", 1, "1"),),
)


def test_what_is_whole_brings_its_entries_and_what_is_not_does_not() -> None:
    whole = {name for name, fault in FAULTS.items() if fault.is_whole}
    assert whole == {
        *("slow_first_byte", "slow_drip", "stale", "reordered", "repeated", "clock_skew", "looping_cursor")
    }


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.spoils])
def test_a_spoiled_page_keeps_its_validators_and_nothing_of_its_packed_body(name: str) -> None:
    page = spoiled(FAULTS[name], RSS)
    assert page.headers["ETag"] == '"x"'
    assert page.packed is None
    assert page.body != RSS.body


def test_only_pages_are_spoiled() -> None:
    unchanged = Page(304, {"ETag": '"x"'})
    assert spoiled(FAULTS["empty"], unchanged) == unchanged


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("slow_down", "300"),
        ("slow_down_until", "Mon, 05 Jan 2026 12:05:00 GMT"),
        ("slow_down_somehow", None),
        ("unavailable", None),
        ("unavailable_for", "120"),
    ],
)
def test_retry_after_is_told_in_seconds_or_as_a_date_or_not_at_all(name: str, told: str | None) -> None:
    assert refused(FAULTS[name], Ask("/", "", {}, AT, "http://127.0.0.1")).headers.get("Retry-After") == told


def test_faults_of_the_wire_leave_the_telling_as_it_is() -> None:
    assert all(
        fault.distortion == STRAIGHT and not fault.spoils for fault in FAULTS.values() if fault.wire != Wire.WHOLE
    )
