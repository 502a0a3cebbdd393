"""Outages at work: each cause is told once, at its own level; quiet, sleep and single failures raise nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import pytest

from catchment.collect.outages import JOB, is_succeeding
from catchment.errors import (
    Missing,
    NetworkError,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
    Unreadable,
)
from catchment.fetch.settings import Attempt
from catchment.jobs import JOBS, run_if_due
from catchment.model import (
    Answer,
    Outcome,
    Platform,
    Request,
    Source,
    SourceState,
    VisitResult,
)
from catchment.sources.add import follow
from tests.town import Feed, Town, TownApp
from tests.web.desk import Desk

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
TICK = 15 * MINUTE
ATOM = (
    '<feed xmlns="http://www.w3.org/2005/Atom"><title>one</title><entry><id>t3_a</id><title>A post</title>'
    '<link href="https://www.reddit.com/r/one/comments/a/x/"/><updated>2025-12-31T00:00:00+00:00</updated>'
    "<author><name>/u/ada</name></author></entry></feed>"
)


class Internet(Town):
    """Feeds, and hosts that can be away: by host, the error that comes instead of an answer; "" stands for all."""

    def __init__(self, town: Town) -> None:
        super().__init__(town.clock)
        self.away: dict[str, Callable[[], PlatformError]] = {}

    def _answer(self, request: Request, platform: Platform, attempts: list[Attempt]) -> Answer:
        host = urlsplit(request.url).hostname or ""
        error = self.away.get(host) or self.away.get("")
        if error is not None:
            attempts.append(Attempt(platform.NAME, self.clock.now(), error().code, 0.0))
            raise error()
        if platform.NAME == "reddit":
            attempts.append(Attempt(platform.NAME, self.clock.now(), "200", 0.0))
            headers = {"content-type": "application/atom+xml"}
            return Answer(200, headers, ATOM.encode(), request.url, self.clock.now())
        return super()._answer(request, platform, attempts)


class Deployment:
    """An app whose collector and monitors run every quarter of an hour, as long as the machine is awake."""

    def __init__(self, here: TownApp) -> None:
        self.net = here.town = Internet(here.town)
        here.play(self.net, *here.app.platforms)
        self.here, self.app, self.clock = here, here.app, here.clock
        for job in self._jobs():
            self.app.store.jobs.announce(job.name, self.clock.now())

    @staticmethod
    def _jobs() -> list[Any]:
        return [job for job in JOBS if job.name in (JOB, "monitor-success", "notice-silence")]

    def feed(self, url: str, **more: Any) -> Source:
        feed = self.net.feeds[url] = Feed(url)
        feed.post("first", at=self.clock.now() - HOUR)
        return self.here.follow(feed, **more)

    def subreddit(self, name: str) -> Source:
        app = self.app
        return follow(app.store, app.secrets, app.platforms, "reddit", name, self.clock.now())[0]

    def tick(self) -> list[VisitResult]:
        """What is due is collected, and the monitors look."""
        results = self.app.scheduler().due("collect-due", "test")
        self.look()
        self.clock.advance(TICK.total_seconds())
        return results

    def look(self) -> None:
        for job in self._jobs():
            run_if_due(self.app, job)

    def run(self, span: timedelta) -> None:
        for _ in range(span // TICK):
            self.tick()

    def sleep(self, span: timedelta) -> None:
        self.clock.advance(span.total_seconds())

    @property
    def subjects(self) -> list[str]:
        return sorted(alert.subject for alert in self.app.store.alerts.open())

    @property
    def messages(self) -> list[str]:
        return sorted(alert.message.split(" — ")[0] for alert in self.app.store.alerts.open())

    @property
    def ever_opened(self) -> list[str]:
        return sorted(alert.subject for alert in self.app.store.alerts.page(include_closed=True))

    @property
    def is_ok(self) -> bool:
        return is_succeeding(self.app.store, self.app.watching_period, self.clock.now())


@pytest.fixture
def deployment(here: TownApp) -> Deployment:
    return Deployment(here)


@pytest.fixture
def small(quick: TownApp) -> Deployment:
    """On SQLite only."""
    return Deployment(quick)


def bad_gateway() -> PlatformError:
    return ServerTrouble("it is in trouble (502)", status=502)


def unconnected() -> PlatformError:
    return NetworkError("the host is not known")


# ── what must be told ─────────────────────────────────────────────────────────────────────────────────────────────


def test_hosts_that_answer_502_for_thirty_hours_are_told_of_once_each_and_health_is_not_ok(
    small: Deployment,
) -> None:
    """Eight feeds of one host and one subreddit, collected once."""
    feeds = [small.feed(f"https://feeds.example/{number}") for number in range(8)]
    community = small.subreddit("r/one")
    assert {result.outcome for result in small.tick()} == {Outcome.SUCCEEDED}
    assert small.is_ok
    small.net.away[""] = bad_gateway
    began = small.clock.now()
    seen: dict[str, timedelta] = {}
    not_ok = None
    while small.clock.now() - began < 30 * HOUR:
        small.tick()
        for subject in small.subjects:
            seen.setdefault(subject, small.clock.now() - began)
        if not_ok is None and not small.is_ok:
            not_ok = small.clock.now() - began
    assert small.ever_opened == ["host feeds.example unreachable", f"source {community.id} failing"]
    assert small.messages == [
        "feeds.example has not answered for 30 h: 8 sources (SERVER_TROUBLE)",
        f"r/one (source {community.id}): reddit has not answered for 30 h (SERVER_TROUBLE)",
    ]
    assert not_ok is not None
    # Feeds are due after four hours; then comes the limit of ninety minutes, and at most an hour to the next attempt.
    assert max(*seen.values(), not_ok) <= 7 * HOUR
    assert not small.is_ok

    small.net.away.clear()
    small.run(HOUR + TICK)
    assert (small.subjects, small.is_ok) == ([], True)
    assert {small.here.progress(source).last_error for source in (*feeds, community)} == {None}


def test_thirteen_hosts_without_a_network_are_one_alert_and_all_is_collected_at_recovery(
    deployment: Deployment,
) -> None:
    sources = [deployment.feed(f"https://site{number}.example/feed") for number in range(13)]
    deployment.tick()
    deployment.net.away[""] = unconnected
    deployment.run(6 * HOUR)
    assert deployment.ever_opened == ["network offline"]
    (message,) = deployment.messages
    assert message == (
        "none of 13 hosts could be reached for 6 h: this machine seems to be offline; 13 sources wait (NETWORK_ERROR)"
    )
    assert not deployment.is_ok
    deployment.net.away.clear()
    deployment.run(20 * MINUTE)
    assert (deployment.subjects, deployment.is_ok) == ([], True)
    lately = deployment.clock.now() - 20 * MINUTE
    assert all(deployment.here.progress(source).last_success_at >= lately for source in sources)


def test_sources_that_were_not_retried_yet_since_the_network_is_back_are_no_outages_of_their_own(
    deployment: Deployment,
) -> None:
    sources = [deployment.feed(f"https://site{number}.example/feed", interval_minutes=30) for number in range(13)]
    deployment.tick()
    deployment.net.away[""] = unconnected
    deployment.run(6 * HOUR)
    deployment.look()
    # These are tried a moment before the network is back, so their next attempt comes last.
    late = sources[:6]
    for source in late:
        deployment.here.collect(source)
    deployment.net.away.clear()
    deployment.app.scheduler().due("collect-due", "test")
    deployment.sleep(MINUTE)
    deployment.look()
    assert all(deployment.here.progress(source).last_error for source in late)
    assert (deployment.subjects, deployment.is_ok) == ([], True)
    deployment.run(30 * MINUTE)
    assert deployment.ever_opened == ["network offline"]
    assert {deployment.here.progress(source).last_error for source in sources} == {None}


def test_the_alert_about_a_host_stays_open_when_another_host_answers_between_its_retries(small: Deployment) -> None:
    """Where others are collected seldom, a host that is away looks like a network that is; until one of them answers.
    Its sources are tried again minutes later, and say nothing until then."""
    away = [small.feed(f"https://away.example/{number}", interval_minutes=30) for number in range(8)]
    small.feed("https://here.example/feed", interval_minutes=240)
    small.tick()
    small.net.away["away.example"] = unconnected
    for _ in range(24 * HOUR // (5 * MINUTE)):
        small.app.scheduler().due("collect-due", "test")
        small.look()
        small.sleep(5 * MINUTE)
    assert small.ever_opened == ["host away.example unreachable"]
    assert small.subjects == ["host away.example unreachable"]
    small.net.away.clear()
    small.run(HOUR + TICK)
    assert (small.subjects, {small.here.progress(source).last_error for source in away}) == ([], {None})


def test_a_platform_that_does_not_answer_is_one_alert_of_that_platform_and_the_rest_is_well(
    small: Deployment,
) -> None:
    communities = [small.subreddit(f"r/place{number}") for number in range(3)]
    small.feed("https://feeds.example/1", interval_minutes=60)
    assert {result.outcome for result in small.tick()} == {Outcome.SUCCEEDED}
    small.net.away["www.reddit.com"] = bad_gateway
    small.run(6 * HOUR)
    assert small.ever_opened == ["platform reddit unreachable"]
    assert small.messages == ["reddit has not answered for 6 h: 3 sources (SERVER_TROUBLE)"]
    assert small.is_ok
    small.net.away.clear()
    small.run(HOUR + TICK)
    assert (small.subjects, small.is_ok) == ([], True)
    assert {small.here.progress(community).last_error for community in communities} == {None}


@pytest.mark.parametrize(("count", "alerts"), [(10, ["platform reddit unreachable"]), (9, [])])
def test_a_platform_of_which_ten_sources_fail_within_minutes_is_told_of_at_once(
    small: Deployment, count: int, alerts: list[str]
) -> None:
    communities = [small.subreddit(f"r/place{number}") for number in range(count)]
    small.tick()
    small.net.away["www.reddit.com"] = bad_gateway
    small.here.collect(*communities)
    small.sleep(MINUTE)
    for job in small._jobs():
        run_if_due(small.app, job)
    assert small.subjects == alerts


def test_a_source_in_our_own_network_does_not_hide_that_the_machine_is_offline(small: Deployment) -> None:
    sources = [small.feed(f"https://site{number}.example/feed") for number in range(13)]
    local = [small.feed("http://192.168.1.5/feed", interval_minutes=15), small.feed("http://nas.lan/feed")]
    small.tick()
    small.net.away.update({f"site{number}.example": unconnected for number in range(13)})
    small.run(17 * HOUR)
    assert small.ever_opened == ["network offline"]
    assert small.messages == [
        "none of 13 hosts could be reached for 17 h: this machine seems to be offline; 13 sources wait (NETWORK_ERROR)"
    ]
    assert not small.is_ok
    assert {small.here.progress(source).last_error for source in local} == {None}
    small.net.away.clear()
    small.run(20 * MINUTE)
    assert (small.subjects, small.is_ok) == ([], True)
    lately = small.clock.now() - 20 * MINUTE
    assert all(small.here.progress(source).last_success_at >= lately for source in sources)


def too_many_requests() -> PlatformError:
    return SlowDown("too many requests (429)", status=429)


@pytest.mark.parametrize("is_alone", [True, False])
def test_a_host_that_refuses_every_request_as_one_too_many_is_told_of(small: Deployment, is_alone: bool) -> None:
    for number in range(8):
        small.feed(f"https://feeds.example/{number}")
    if not is_alone:
        small.feed("https://other.example/feed", interval_minutes=60)
    small.tick()
    small.net.away["feeds.example"] = too_many_requests
    small.run(7 * HOUR)
    assert small.subjects == ["host feeds.example unreachable"]
    assert small.is_ok is not is_alone
    # How long it lasts is the same for both; where it is alone, the time goes on for long enough to be told.
    small.run(65 * HOUR if is_alone else 5 * HOUR)
    duration = "3 days" if is_alone else "12 h"
    assert small.messages == [f"feeds.example has been rate-limiting requests for {duration}: 8 sources"]
    assert small.ever_opened == ["host feeds.example unreachable"]
    small.net.away.clear()
    small.run(HOUR)
    assert (small.subjects, small.is_ok) == ([], True)


def test_a_single_source_that_is_refused_as_one_too_many_has_an_alert_that_says_so(small: Deployment) -> None:
    source = small.feed("https://feeds.example/1")
    small.feed("https://other.example/feed", interval_minutes=60)
    small.tick()
    small.net.away["feeds.example"] = too_many_requests
    small.run(72 * HOUR)
    assert small.messages == [f"A feed (source {source.id}): feeds.example has been rate-limiting requests for 3 days"]


def test_one_long_wait_that_a_server_asks_for_is_no_outage_and_a_second_one_is(small: Deployment) -> None:
    for number in range(8):
        small.feed(f"https://feeds.example/{number}")
    small.tick()
    small.net.away["feeds.example"] = lambda: SlowDown(
        "too many requests (429)", status=429, retry_at=small.clock.now() + 10 * HOUR
    )
    small.run(13 * HOUR)
    assert (small.subjects, small.is_ok) == ([], True)
    small.run(4 * HOUR)
    assert (small.subjects, small.is_ok) == (["host feeds.example unreachable"], False)


def test_a_standstill_of_unreadable_sources_opens_each_alert_at_most_once(small: Deployment) -> None:
    sources = [small.feed(f"https://site{number}.example/feed", interval_minutes=60) for number in range(3)]
    small.tick()
    small.net.away[""] = lambda: Unreadable("this is no feed")
    small.run(30 * HOUR)
    assert small.subjects == ["collecting stalled"]
    assert len(set(small.ever_opened)) == len(small.ever_opened) <= 1 + len(sources)


def test_a_new_deployment_without_a_network_is_told_of_after_the_limit(small: Deployment) -> None:
    for number in range(3):
        small.feed(f"https://site{number}.example/feed")
    small.net.away[""] = unconnected
    small.run(80 * MINUTE)
    assert (small.subjects, small.is_ok) == ([], True)
    small.run(30 * MINUTE)
    assert (small.subjects, small.is_ok) == (["network offline"], False)


def test_a_host_that_cannot_be_reached_while_it_is_the_only_one_is_that_hosts_problem(small: Deployment) -> None:
    for number in range(2):
        small.feed(f"https://feeds.example/{number}")
    small.tick()
    small.net.away[""] = unconnected
    small.run(6 * HOUR)
    assert small.subjects == ["host feeds.example unreachable"]


def test_health_answers_503_without_success_and_says_which_limit_that_is(small: Deployment) -> None:
    desk = Desk(small.here)
    small.feed("https://one.example/feed")
    small.tick()
    assert desk.get("/health")["collecting"] == {"ok": True, "limit_minutes": 90}
    small.net.away[""] = unconnected
    small.run(6 * HOUR)
    answer = desk.client.get("/health")
    assert (answer.status_code, answer.json()["collecting"]["ok"]) == (503, False)
    assert desk.stranger.get("/health").json() == {"ok": False}
    small.net.away.clear()
    # At once, and not only when the monitor looks again.
    small.app.scheduler().due("collect-due", "test")
    assert desk.client.get("/health").status_code == 200


def test_the_only_source_of_a_deployment_is_told_of_as_soon_as_many(small: Deployment) -> None:
    source = small.feed("https://one.example/feed")
    small.tick()
    small.net.away[""] = unconnected
    small.run(6 * HOUR)
    assert (small.subjects, small.is_ok) == ([f"source {source.id} failing"], False)
    small.net.away.clear()
    small.run(20 * MINUTE)
    assert (small.subjects, small.is_ok) == ([], True)


def test_sources_that_are_all_refused_are_told_of_as_a_standstill(small: Deployment) -> None:
    for number in range(4):
        small.feed(f"https://site{number}.example/feed")
    small.tick()
    small.net.away[""] = lambda: Refused("access denied (403)", status=403)
    small.run(6 * HOUR)
    assert (small.ever_opened, small.is_ok) == (["collecting stalled"], False)
    assert small.messages == ["nothing has been collected for 6 h: 4 sources, most often REFUSED"]
    small.net.away.clear()
    small.run(4 * HOUR)
    assert (small.subjects, small.is_ok) == ([], True)


def refused_connection() -> PlatformError:
    """Something on the way says no: the host itself, or a firewall before it."""
    error = NetworkError("the host takes no connection")
    error.is_contact = True
    return error


@pytest.mark.parametrize("error", [bad_gateway, refused_connection])
def test_hosts_that_all_fail_in_a_way_of_their_own_are_one_standstill(
    small: Deployment, error: Callable[[], PlatformError]
) -> None:
    feeds = [small.feed(f"https://site{number}.example/feed", interval_minutes=120) for number in range(5)]
    small.tick()
    small.net.away[""] = error
    for _ in range(24 * 4):
        small.tick()
        # Whoever sees that /health is not ok finds the reason among the alerts.
        assert (small.subjects == []) == small.is_ok
    assert small.ever_opened == ["collecting stalled"]
    assert small.messages == [f"nothing has been collected for 24 h: 5 sources, most often {error().code}"]
    small.net.away.clear()
    # Nobody's fault, so nobody is on probation.
    small.run(HOUR + TICK)
    assert (small.ever_opened, small.subjects, small.is_ok) == (["collecting stalled"], [], True)
    assert {small.here.progress(feed).last_error for feed in feeds} == {None}


def test_whatever_makes_health_not_ok_has_an_alert_at_the_same_time(small: Deployment) -> None:
    source = small.feed("https://one.example/feed", interval_minutes=600)
    small.tick()
    small.net.away[""] = refused_connection
    while small.is_ok:
        small.tick()
    assert small.subjects == [f"source {source.id} failing"]


def test_a_source_that_its_host_fails_while_it_answers_others_is_told_of_after_a_while(small: Deployment) -> None:
    """Two feeds of a host with many: their failures at the same moment count for neither of them."""
    for number in range(6):
        small.feed(f"https://feeds.example/{number}")
    bad = [small.feed(f"https://feeds.example/bad{number}") for number in range(2)]
    small.tick()
    for source in bad:
        small.net.feeds[source.target].says.extend(bad_gateway() for _ in range(999))
    small.run(40 * HOUR)
    assert small.subjects == sorted(f"source {source.id} failing" for source in bad)
    assert small.is_ok


def test_an_alert_of_the_host_takes_the_place_of_those_of_its_sources(small: Deployment) -> None:
    sources = [small.feed(f"https://feeds.example/{number}", interval_minutes=30) for number in range(3)]
    small.tick()
    first = small.net.feeds[sources[0].target]
    first.says.extend(bad_gateway() for _ in range(999))
    small.run(8 * HOUR)
    assert small.subjects == [f"source {sources[0].id} failing"]
    small.net.away["feeds.example"] = bad_gateway
    small.run(4 * HOUR)
    assert small.subjects == ["host feeds.example unreachable"]


def test_an_outage_that_is_told_of_is_not_told_of_again_as_too_little_success(small: Deployment) -> None:
    for number in range(12):
        small.feed(f"https://feeds.example/{number}", interval_minutes=10)
    small.tick()
    small.net.away[""] = bad_gateway
    small.run(4 * HOUR)
    assert small.subjects == ["host feeds.example unreachable"]


# ── what must not ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_one_source_of_many_that_fails_is_no_outage(small: Deployment) -> None:
    for number in range(9):
        small.feed(f"https://site{number}.example/feed")
    small.feed("https://dead.example/feed")
    small.tick()
    small.net.away["dead.example"] = bad_gateway
    for _ in range(15 * 4):
        small.tick()
        assert (small.subjects, small.is_ok) == ([], True)


def test_two_dead_hosts_among_many_are_not_taken_for_a_missing_network(small: Deployment) -> None:
    for number in range(9):
        small.feed(f"https://site{number}.example/feed")
    for name in ("dead", "gone"):
        small.net.away[f"{name}.example"] = unconnected
        small.feed(f"https://{name}.example/feed")
    for _ in range(15 * 4):
        small.tick()
        assert ("network offline" in small.subjects, small.is_ok) == (False, True)


def test_dead_hosts_among_a_few_others_end_on_probation_and_are_not_asked_every_quarter_of_an_hour(
    small: Deployment,
) -> None:
    for number in range(8):
        small.feed(f"https://site{number}.example/feed")
    dead = [small.feed(f"https://{name}.example/feed") for name in ("dead", "gone", "lost")]
    small.tick()
    for source in dead:
        small.net.away[urlsplit(source.target).hostname or ""] = unconnected
    small.run(72 * HOUR)
    for source in dead:
        progress = small.here.progress(source)
        assert (progress.failures_in_a_row >= 5, progress.due_reason) == (True, "probation")
        # Often only until others have answered three times meanwhile.
        assert progress.poll_count < 80
    assert (small.subjects, small.is_ok) == (sorted(f"source {source.id} failing" for source in dead), True)


def test_a_short_outage_raises_nothing(small: Deployment) -> None:
    for number in range(4):
        small.feed(f"https://feeds.example/{number}")
    small.feed("https://other.example/feed", interval_minutes=60)
    small.tick()
    small.run(4 * HOUR - TICK)
    small.net.away[""] = bad_gateway
    small.run(30 * MINUTE)
    small.net.away.clear()
    for _ in range(24 * 4):
        small.tick()
        assert (small.subjects, small.is_ok) == ([], True)


def test_a_night_in_which_nobody_posts_raises_nothing(small: Deployment) -> None:
    for number in range(4):
        small.feed(f"https://site{number}.example/feed")
    for _ in range(12 * 4):
        small.tick()
        assert (small.subjects, small.is_ok) == ([], True)


@pytest.mark.parametrize("error", [bad_gateway, unconnected])
def test_a_machine_that_slept_is_given_time_to_collect_before_anything_is_told(
    small: Deployment, error: Callable[[], PlatformError]
) -> None:
    for number in range(4):
        small.feed(f"https://site{number}.example/feed")
    small.tick()
    small.run(4 * HOUR)
    small.net.away[""] = error
    small.run(20 * MINUTE)
    small.sleep(9 * HOUR)
    # The network needs a while, too.
    small.run(HOUR)
    assert (small.ever_opened, small.is_ok) == ([], True)
    small.net.away.clear()
    small.run(5 * HOUR)
    assert (small.ever_opened, small.is_ok) == ([], True)


def test_paused_sources_and_none_at_all_are_healthy(small: Deployment) -> None:
    small.run(3 * HOUR)
    assert small.is_ok
    source = small.feed("https://one.example/feed")
    small.net.away[""] = unconnected
    small.tick()
    small.app.store.sources.set_state(source.id, SourceState.PAUSED, None, small.clock.now())
    small.run(9 * HOUR)
    assert (small.subjects, small.is_ok) == ([], True)


def test_a_source_that_was_resumed_after_a_long_pause_is_not_overdue_at_once(small: Deployment) -> None:
    source = small.feed("https://one.example/feed")
    small.tick()
    small.app.store.sources.set_state(source.id, SourceState.PAUSED, None, small.clock.now())
    small.run(24 * HOUR)
    small.net.away[""] = unconnected
    small.app.store.sources.set_state(source.id, SourceState.ACTIVE, None, small.clock.now())
    small.run(80 * MINUTE)
    assert (small.subjects, small.is_ok) == ([], True)


def test_a_new_source_with_a_wrong_address_is_no_standstill(small: Deployment) -> None:
    for number in range(2):
        small.feed(f"https://site{number}.example/feed")
    small.tick()
    small.net.away["typo.example"] = lambda: Missing("there is nothing at this address (404)", status=404)
    small.feed("https://typo.example/feed")
    small.run(3 * HOUR + 30 * MINUTE)
    assert (small.subjects, small.is_ok) == ([], True)


def test_how_long_nothing_may_succeed_is_a_setting(small: Deployment) -> None:
    small.app.settings = replace(small.app.settings, monitor_stale_minutes=600)
    small.feed("https://one.example/feed")
    small.tick()
    small.net.away[""] = unconnected
    small.run(13 * HOUR)
    assert small.is_ok
    small.run(2 * HOUR)
    assert not small.is_ok
