"""What X costs: our books agree with the playground's own bill, and no cap is exceeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.app import open_app
from catchment.collect.tasks import request_task
from catchment.credentials.secret import Secret
from catchment.errors import Missing
from catchment.fetch.client import prove
from catchment.model import Outcome, Source
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.log import Bill, bill_of, read_log
from catchment.playground.sites.x import LIST, fate, user_name
from catchment.policy.spending import Period, Total, day_of
from catchment.sources.add import follow
from catchment.sources.preview import preview
from catchment.store.credentials import Terms
from tests.forked import Forked
from tests.playground.money_process import settings_of, visit_at_once
from tests.x.scene import SERVICES, START, WORLD, Scene, somebody

pytestmark = pytest.mark.long

MONTH = "2026-03"


class PaidScene(Scene):
    """With prices, caps and faults."""

    def __init__(self, folder: Path, *, faults: float = 0.0, **settings: Any) -> None:
        super().__init__(folder, "a-key-for-")
        self.playground.faults = self.playground._site._faults = FaultPlan(5, faults)
        self.with_settings(**settings)

    def with_settings(self, **settings: Any) -> None:
        """Starts anew with other settings, as after a change of the environment."""
        before = self.app.settings
        self.app.close()
        self.app = open_app(replace(before, **settings), "test", clock=self.clock)

    def bill(self, service: str | None = None) -> Bill:
        lines = read_log(self.log)
        return bill_of(line for line in lines if service is None or line.path.startswith("/2/") == (service == "x"))

    def total(self, service: str, period: Period = Period.MONTH) -> Total:
        return self.app.store.spending.totals([service], day_of(self.clock.now()))[service][period]

    def user(self, service: str, what: str = "usual", **settings: Any) -> Source:
        return self.follow(f"@{user_name(WORLD, somebody(what), START)}", service, **settings)


@pytest.fixture
def paid(tmp_path: Path) -> Iterator[Callable[..., PaidScene]]:
    scenes: list[PaidScene] = []

    def open_scene(**more: Any) -> PaidScene:
        scenes.append(PaidScene(tmp_path, **more))
        return scenes[-1]

    yield open_scene
    for scene in scenes:
        scene.close()


@pytest.mark.parametrize("service", SERVICES)
def test_our_books_agree_with_the_bill(paid: Callable[..., PaidScene], service: str) -> None:
    scene = paid()
    sources = [scene.user(service), scene.follow("@nobody_of_this", service)]
    sources.append(scene.follow(str(LIST), service, "twitter_list"))
    for _ in range(3):
        for source in sources:
            scene.visit(source)
        scene.clock.advance(5 * 3600)
    bill, ledger = scene.bill(), scene.app.store.spending
    assert bill.amount > 0
    assert scene.total(service) == Total(bill.amount)
    # Each in its place: the unknown user costs the look-up alone, and every call has its source and its key.
    by_source = {spent.source_id: spent for spent in ledger.by_source(MONTH, 10)}
    unknown = by_source.get(sources[1].id)
    assert (unknown.amount if unknown else 0) == (450 if service == "twitterapi_io" else 0)
    assert by_source[sources[0].id].profiles == 1
    assert sum(spent.amount for spent in by_source.values()) == bill.amount
    assert [(spent.credential, spent.amount) for spent in ledger.by_credential(MONTH)] == [
        (f"key-{service}", bill.amount)
    ]


def test_checks_of_credentials_and_previews_are_booked_for_no_source(paid: Callable[..., PaidScene]) -> None:
    scene = paid()
    source = scene.user("x")
    app = scene.app
    for service in SERVICES:
        (credential,) = [known for known in app.store.credentials.known() if known.platform == service]
        with suppress(Missing):  # the user whom X is asked for lives in the real world only
            prove(app.fetch, app.platforms.service(service), credential)
    # The balance at TwitterAPI.io is free of charge.
    assert (scene.bill("twitterapi_io").amount, scene.total("twitterapi_io")) == (0, Total())
    preview(app.visitor(), source.replace(id=0))
    assert scene.total("x") == Total(scene.bill("x").amount)
    assert [spent.source_id for spent in app.store.spending.by_source(MONTH, 10)] == [0]


@pytest.mark.parametrize("service", SERVICES)
def test_with_faults_the_bill_lies_between_what_is_certain_and_what_may_have_been_charged(
    paid: Callable[..., PaidScene], service: str
) -> None:
    scene = paid(faults=0.4)
    source = scene.user(service, limit=1000)
    for _ in range(25):
        scene.visit(source)
        scene.clock.advance(3 * 3600)
    bill, total = scene.bill(), scene.total(service)
    assert bill.hidden
    assert (total.amount, total.reserved_amount) == (bill.plain, 0)
    assert bill.hidden <= total.uncertain_amount


@pytest.mark.parametrize("fault", ["torn_body", "cut_body", "reset"])
@pytest.mark.parametrize("service", SERVICES)
def test_an_answer_that_broke_off_counts_as_much_as_the_same_call_a_moment_later(
    paid: Callable[..., PaidScene], service: str, fault: str
) -> None:
    scene = paid()
    path = {"x": "/2/users/*/tweets", "twitterapi_io": "/twitter/user/last_tweets"}[service]
    source = scene.user(service)
    scene.visit(source)
    before = scene.total(service).amount
    scene.playground.faults = scene.playground._site._faults = FaultPlan(
        5, 0.0, [Cue(fault, path, from_at=scene.clock.now(), to_at=scene.clock.now() + timedelta(hours=5, seconds=1))]
    )
    scene.clock.advance(5 * 3600)
    assert scene.visit(source).outcome == Outcome.SUCCEEDED
    total = scene.total(service)
    broken = total.uncertain_amount
    # Once for the answer that came whole; and not what the largest page would have cost.
    assert 0 < broken == total.amount - before < {"x": 500_000, "twitterapi_io": 3_001}[service]
    assert scene.bill().hidden <= broken


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(("period", "word", "days"), [(Period.DAY, "daily", 1), (Period.MONTH, "monthly", 31)])
def test_a_cap_ends_the_walk_with_a_gap_and_the_source_waits_until_it_ends(
    paid: Callable[..., PaidScene], service: str, period: Period, word: str, days: int
) -> None:
    scene = paid()
    source = scene.user(service)
    # After visits that found nothing new, X's own API is asked for small pages, too.
    for _ in range(4):
        assert scene.visit(source).error is None
        scene.clock.advance(60)
    watermark = scene.progress(source).watermark
    scene.clock.advance(4 * 86_400)
    # There is more than one page; the cap allows a page, and then none: X's own API is asked for five posts at least.
    rest = {"x": 20_000, "twitterapi_io": 1_500}[service]
    size = 20 if service == "twitterapi_io" else max(20, min(100, scene.progress(source).next_limit))
    page = size * {"x": 5_000, "twitterapi_io": 150}[service]
    before, spent_before = scene.bill(), scene.total(service, period).amount
    cap = spent_before + page + rest
    scene.with_settings(**{f"{word}_caps": {service: cap}})
    result = scene.visit(source)
    assert (result.outcome, result.error_code) == (Outcome.DEFERRED, "SPENDING_CAP")
    assert 0 < scene.bill().amount - before.amount <= page + rest
    (gap,) = scene.app.store.gaps.newest()
    assert (gap.cause, gap.is_certain, gap.from_at) == ("money", True, watermark.at)
    progress = scene.progress(source)
    assert progress.watermark.at > watermark.at
    assert progress.failures_in_a_row == 0
    # It is looked at again at its usual interval, and asks nothing before the day or month is over.
    assert str(progress.due_reason) == f"the {word} spending cap"
    calls = scene.bill().calls
    assert scene.visit(source).outcome == Outcome.DEFERRED
    assert scene.bill().calls == calls
    assert scene.total(service, period).committed <= cap
    # After a visit that brought nothing but new posts, larger pages are expected; what the cap allows is requested.
    scene.clock.advance(days * 86_400)
    assert scene.visit(source).counts.new > 0


def test_x_is_asked_for_as_many_posts_as_are_left_of_a_cap(paid: Callable[..., PaidScene]) -> None:
    # A profile and eight posts.
    scene = paid(daily_caps={"x": 10_000 + 8 * 5_000})
    result = scene.visit(scene.user("x"))
    assert (result.outcome, result.counts.new) == (Outcome.DEFERRED, 8)
    assert scene.bill().amount == scene.total("x").amount == 50_000


def test_a_cap_below_the_price_of_a_call_is_named_with_the_price_and_not_waited_for(
    paid: Callable[..., PaidScene],
) -> None:
    scene = paid(daily_caps={"twitterapi_io": 2_999})
    source = scene.user("twitterapi_io")
    result = scene.visit(source)
    assert (result.outcome, result.error_code) == (Outcome.DEFERRED, "SPENDING_CAP")
    said = str(result.error)
    assert all(words in said for words in ("can cost $0.003", "its daily spending cap ($0.002999)", "raise the cap to"))
    assert "continues automatically" not in said
    scene.app.monitor_spending()
    (alert,) = scene.app.store.alerts.page()
    assert (alert.severity, "waiting does not help" in str(alert.message)) == ("P0", True)
    # A day later, it is no different.
    scene.clock.advance(86_400)
    assert str(scene.visit(source).error) == said
    scene.with_settings(daily_caps={"twitterapi_io": 4_000})
    assert scene.visit(source).counts.new == 20


@pytest.mark.parametrize("service", SERVICES)
def test_a_task_that_meets_a_cap_ends_and_says_of_each_user_that_it_was_the_money(
    paid: Callable[..., PaidScene], service: str
) -> None:
    # Enough for the profiles of all, and for the posts of one.
    scene = paid(daily_caps={service: {"x": 3 * 10_000 + 100_000, "twitterapi_io": 3 * 180 + 3_000}[service]})
    scene.app.credential_manager.remove(f"key-{next(other for other in SERVICES if other != service)}")
    names = [user_name(WORLD, place, START) for place in WORLD.places if fate(WORLD, place)[0] == "usual"][:3]
    app, now = scene.app, scene.clock.now()
    requested = request_task(app.store, app.platforms, "twitter_feed", names, 20, now)
    app.task_runner().run()
    done = app.store.tasks.get(requested.task_id)
    assert done.state == "completed"
    assert [(str(target.outcome), target.error_code) for target in done.targets].count(("failed", "SPENDING_CAP")) == 2
    assert [target.new for target in done.targets if target.outcome == Outcome.SUCCEEDED] == [20]
    assert all("cap" in str(target.error) for target in done.targets if target.error)
    assert scene.total(service, Period.DAY).committed <= app.settings.daily_caps[service]


def test_repairing_a_gap_is_paid_for_within_the_cap(paid: Callable[..., PaidScene]) -> None:
    scene = paid()
    source = scene.user("twitterapi_io")
    scene.visit(source)
    scene.clock.advance(4 * 86_400)
    scene.with_settings(daily_caps={"twitterapi_io": 4_500})
    assert scene.visit(source).outcome == Outcome.DEFERRED
    calls = scene.bill().calls
    scene.app.floor_audit().run("test", is_repairing=True)
    # Nothing is asked, and the gap stays as it is.
    assert (scene.bill().calls, scene.app.store.gaps.newest()[0].attempt_count) == (calls, 0)
    scene.with_settings(daily_caps={})
    scene.clock.advance(3_600)
    scene.app.floor_audit().run("test", is_repairing=True)
    assert scene.bill().calls > calls
    assert scene.total("twitterapi_io").replace(refused_amount=None) == Total(scene.bill().amount)


def test_a_first_walk_that_a_cap_cut_short_goes_on_where_it_was(paid: Callable[..., PaidScene]) -> None:
    scene = paid(daily_caps={"twitterapi_io": 180 + 3_000 + 1_000})
    source = scene.user("twitterapi_io", limit=60)
    first = scene.visit(source)
    assert (first.outcome, first.counts.new) == (Outcome.DEFERRED, 20)
    assert scene.app.store.gaps.newest() == []
    scene.with_settings(daily_caps={})
    second = scene.visit(source)
    assert second.outcome == Outcome.SUCCEEDED
    # No page was asked for twice: every post was charged for once.
    assert second.counts.duplicate == 0
    assert scene.bill().amount == 180 + 150 * len(scene.items(source))
    assert scene.progress(source).last_fetched_count == len(scene.items(source))


def test_a_run_that_continues_a_walk_visits_its_source_once_although_it_is_due_again(
    paid: Callable[..., PaidScene],
) -> None:
    scene = paid(daily_caps={"twitterapi_io": 180 + 3_000 + 1_000})
    source = scene.user("twitterapi_io", limit=60)
    scene.visit(source)
    scene.with_settings(daily_caps={})
    scene.clock.advance(2 * 3600)
    runs = [scene.app.scheduler().due("collect", "test") for _ in range(2)]
    # The first run finishes the walk that began two hours ago; the newest posts are read by the second.
    assert [[result.source_id for result in run] for run in runs] == [[source.id], [source.id]]
    recorded = {visit.run_id: visit.new_count for visit in scene.app.store.runs.of_source(source.id, limit=3)}
    assert len(recorded) == 3
    assert sum(recorded.values()) == len(scene.items(source))


def test_eight_threads_in_two_processes_never_exceed_a_cap(tmp_path: Path, database_url: str) -> None:
    scene = PaidScene(tmp_path)
    try:
        settings = settings_of(str(tmp_path / "home"), database_url, scene.playground.url)
        names = [f"@{user_name(WORLD, place, START)}" for place in WORLD.places[:60]]
        with open_app(settings, "test", clock=scene.clock) as app:
            now = app.clock.now()
            app.secrets.add("twitterapi_io", "key", Secret.parse("a-key"), now, terms=Terms(is_shared=True))
            for name in names:
                follow(app.store, app.secrets, app.platforms, "twitter_feed", name, now, settings={"limit": 20})
        runners = [
            Forked(visit_at_once, str(tmp_path / "home"), database_url, scene.playground.url, str(part))
            for part in range(2)
        ]
        for runner in runners:
            assert runner.stdout.readline() == "ready\n"
        for runner in runners:
            runner.stdin.write("go\n")
            runner.stdin.flush()
        outcomes = [line for runner in runners for line in runner.stdout.read().splitlines()]
        assert [runner.code() for runner in runners] == [0, 0], [runner.stderr.read() for runner in runners]
        for runner in runners:
            runner.close()
        assert len(outcomes) == len(names)
        assert "deferred SPENDING_CAP" in outcomes
        bill = scene.bill()
        with open_app(settings, "judge", clock=scene.clock) as app:
            cap = settings.daily_caps["twitterapi_io"]
            total = app.store.spending.totals(["twitterapi_io"], day_of(scene.clock.now()))["twitterapi_io"]
            assert total[Period.DAY].replace(refused_amount=None) == Total(bill.amount)
            # Nothing above the cap, and nothing left that a call would have fitted into.
            assert cap - 3_000 < bill.amount <= cap
    finally:
        scene.close()
