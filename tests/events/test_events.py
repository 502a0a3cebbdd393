"""Which events there are, and that they are written with what they tell of: in order, none without it."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event as Flag

import pytest

from catchment.clock import micros
from catchment.errors import Refused
from catchment.model import AlertRequest
from catchment.store.database import Transaction
from catchment.store.delivery.events import tell
from catchment.store.sources.alerts import close, raise_alert
from tests.events.teller import Teller


def names(teller: Teller) -> list[str]:
    return [name for name, _ in teller.events()]


def test_a_page_that_changed_something_is_told_with_its_change_number(both: Teller) -> None:
    feed = both.town.feed()
    feed.post("1")
    source = both.follow(feed)
    both.collect(source)
    both.collect(source)
    ((name, data),) = both.events()
    assert name == "items.collected"
    assert (data["source_id"], data["change_number"], data["new"], data["updated"]) == (source.id, 1, 1, 0)


def test_a_source_that_fails_and_recovers_is_told_of_once_each(both: Teller) -> None:
    feed = both.town.feed()
    source = both.follow(feed)
    feed.says.extend([Refused("no", status=403)] * 7)
    for _ in range(8):
        both.collect(source)
    assert names(both) == ["alert.opened", "source.failing", "alert.closed", "source.recovered"]
    opened, failing, closed, recovered = (data for _, data in both.events())
    assert (opened["subject"], opened["source_id"], closed["alert_id"]) == (
        f"source {source.id} failing",
        source.id,
        opened["alert_id"],
    )
    assert (failing["source_id"], failing["error_code"], recovered["name"]) == (source.id, "REFUSED", source.name)


def test_an_alert_is_told_of_when_it_opens_and_when_it_closes_and_not_when_it_is_said_anew(both: Teller) -> None:
    write = both.store.database.write
    assert write(lambda tx: raise_alert(tx, AlertRequest("it", "first"), 1))
    assert not write(lambda tx: raise_alert(tx, AlertRequest("it", "second"), 2))
    assert write(lambda tx: close(tx, "it", 3))
    assert not write(lambda tx: close(tx, "it", 4))
    assert [(name, data["message"]) for name, data in both.events()] == [
        ("alert.opened", "first"),
        ("alert.closed", "second"),
    ]


@pytest.mark.parametrize("is_told", [False, True])
def test_the_end_of_a_visit_that_brought_something_is_told_only_if_it_is_asked_for(
    tmp_path: Path, database_url: str, is_told: bool
) -> None:
    teller = Teller(tmp_path / "home", database_url, is_ready_told=is_told)
    feed = teller.town.feed()
    feed.post("1")
    source = teller.follow(feed)
    teller.collect(source)
    teller.collect(source)
    ready = [data for name, data in teller.events() if name == "items.ready"]
    assert [(event["source_id"], event["new"]) for event in ready] == ([(source.id, 1)] if is_told else [])
    teller.close()


def test_an_event_whose_transaction_fails_was_never_there_and_leaves_no_hole(both: Teller) -> None:
    def fail(tx: Transaction) -> None:
        tell(tx, "alert.opened", {}, 1)
        raise RuntimeError

    both.happen("one")
    with pytest.raises(RuntimeError):
        both.store.database.write(fail)
    both.happen("two")
    events, missing = both.store.outbox.after(0, 10)
    assert ([(event.id, event.data["what"]) for event in events], missing) == ([(1, "one"), (2, "two")], 0)


def test_a_listener_does_not_run_past_an_event_that_is_being_written(both: Teller) -> None:
    is_written, may_commit = Flag(), Flag()

    def hang(tx: Transaction) -> None:
        tell(tx, "items.collected", {"what": "first"}, micros(both.clock.now()))
        is_written.set()
        may_commit.wait(600)

    with ThreadPoolExecutor(2) as pool:
        slow = pool.submit(both.store.database.write, hang)
        is_written.wait(600)
        quick = pool.submit(both.happen, "second")
        assert both.store.outbox.after(0, 10) == ([], 0)
        may_commit.set()
        slow.result()
        quick.result()
    assert [event.data["what"] for event in both.store.outbox.after(0, 10)[0]] == ["first", "second"]
