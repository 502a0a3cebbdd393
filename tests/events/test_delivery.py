"""Events reach those who listen: at least once, in order, signed, and nobody waits for anybody else."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from threading import Event as Flag
from typing import Any

import pytest

from catchment.clock import micros
from catchment.errors import (
    AddressRefused,
    Gone,
    InvalidInput,
    VaultError,
)
from catchment.events import webhooks
from catchment.model import as_json
from catchment.store.delivery.events import tell
from catchment.store.items.deletion import Forget
from tests.events.teller import SECRET, Teller, heard
from tests.hostile import Behaviour, Connection, Hostile, Seen, redirect, reply, status

ROOT = Path(__file__).parents[2]
HOUR = timedelta(hours=1)


def in_turn(*codes: int) -> list[Behaviour]:
    return [status(code) for code in codes]


# ── what arrives ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_webhook_gets_what_happens_after_it_was_added_once_and_in_order(both: Teller, receiver: Hostile) -> None:
    both.happen("before")
    both.webhook(receiver.on("/hook", reply()))
    both.happen("one", "two", "three")
    both.round()
    both.round()
    assert heard(receiver.seen) == ["one", "two", "three"]
    state = both.state()
    assert (state.position, state.waiting_count, state.delivered_count, state.given_up_count) == (
        4,
        0,
        3,
        0,
    )


def test_a_message_says_what_happened_when_and_under_which_number(teller: Teller, receiver: Hostile) -> None:
    teller.webhook(receiver.on("/hook", reply()))
    teller.happen("one")
    teller.round()
    (seen,) = receiver.seen
    now = teller.clock.now()
    assert json.loads(seen.body) == {
        "id": 1,
        "event": "items.collected",
        "created_at": now.isoformat(),
        "data": {"what": "one"},
    }
    names = ("content-type", "x-catchment-event", "x-catchment-delivery", "x-catchment-timestamp")
    stamp = str(int(now.timestamp()))
    assert (seen.method, *(seen.headers[name] for name in names)) == (
        "POST", "application/json", "items.collected", "1-1", stamp,
    )  # fmt: skip
    expected = hmac.new(SECRET.encode(), f"{stamp}.".encode() + seen.body, hashlib.sha256).hexdigest()
    assert seen.headers["x-catchment-signature"] == f"v1={expected}"


def test_the_verification_in_the_docs_accepts_ours_and_nothing_else(teller: Teller, receiver: Hostile) -> None:
    (code,) = re.findall(
        r"^```python\n(def is_from_catchment.*?|import .*?is_from_catchment.*?)^```", _page(), re.M | re.S
    )
    scope: dict[str, Any] = {}
    exec(code, scope)
    teller.webhook(receiver.on("/hook", reply()))
    teller.happen("one")
    teller.round()
    (seen,) = receiver.seen
    at = teller.clock.now().timestamp()
    verify = scope["is_from_catchment"]
    assert verify(SECRET, seen.headers, seen.body, at)
    assert not verify("another secret", seen.headers, seen.body, at)
    assert not verify(SECRET, seen.headers, seen.body + b" ", at)
    assert not verify(SECRET, seen.headers, seen.body, at + 3600)
    later = {**seen.headers, "x-catchment-timestamp": str(int(at) + 3600)}
    assert not verify(SECRET, later, seen.body, at + 3600)


def _page() -> str:
    return (ROOT / "docs" / "events.md").read_text()


def test_only_the_events_that_are_asked_for_are_sent_and_the_others_do_not_wait(
    teller: Teller, receiver: Hostile
) -> None:
    teller.webhook(receiver.on("/hook", reply()), events=["watch.matched"])
    teller.happen("a", "b")
    teller.happen("c", event="watch.matched")
    teller.happen("d")
    teller.round()
    assert heard(receiver.seen) == ["c"]
    assert (teller.state().waiting_count, teller.state().given_up_count) == (0, 0)


# ── when it does not arrive ───────────────────────────────────────────────────────────────────────────────────────


def test_an_event_that_is_not_taken_comes_again_and_those_behind_it_wait(both: Teller, receiver: Hostile) -> None:
    both.webhook(receiver.on("/hook", *in_turn(200, 500, 503), reply()))
    both.happen("one", "two", "three")
    both.round()
    assert heard(receiver.seen) == ["one", "two"]
    both.round(timedelta(seconds=1))
    assert len(receiver.seen) == 2, "it is left alone for a while"
    assert both.state().failures_in_a_row == 1
    both.round(HOUR)
    both.round(HOUR)
    assert heard(receiver.seen) == ["one", "two", "two", "two", "three"]
    deliveries = [request.headers["x-catchment-delivery"] for request in receiver.seen]
    assert deliveries == ["1-1", "2-1", "2-2", "2-3", "3-1"]
    state = both.state()
    assert (state.failures_in_a_row, state.last_error, state.next_attempt_at) == (0, None, None)


def test_waits_grow_and_the_receivers_own_wish_is_respected(teller: Teller, receiver: Hostile) -> None:
    teller.webhook(receiver.on("/hook", status(500), status(500), status(500), status(429, retry_after="7200")))
    teller.happen("one")
    waits = []
    for _ in range(4):
        teller.round(HOUR * 3)
        next_at = teller.state().next_attempt_at
        waits.append((next_at - teller.clock.now()).total_seconds())
    assert waits == [15, 30, 60, 7200]


def test_a_dead_or_hanging_webhook_delays_nobody_else(teller: Teller, receiver: Hostile) -> None:
    may_answer = Flag()

    def hang(connection: Connection, seen: Seen) -> bool:
        may_answer.wait(600)
        return status(200)(connection, seen)

    teller.webhook("http://127.0.0.1:9/nobody", "dead")
    teller.webhook(receiver.on("/hang", hang), "slow")
    teller.webhook(receiver.on("/hook", reply()))
    teller.happen("one", "two")
    until_it_has_all(teller)
    teller.happen("three")
    until_it_has_all(teller)
    assert heard([request for request in receiver.seen if request.path == "/hook"]) == ["one", "two", "three"]
    assert [request.path for request in receiver.seen].count("/hang") == 1, "and it is not told again while it thinks"
    may_answer.set()
    until_it_has_all(teller, "webhook slow")
    assert heard([request for request in receiver.seen if request.path == "/hang"]) == ["one", "two", "three"]
    assert teller.state("webhook dead").waiting_count == 3


def until_it_has_all(teller: Teller, name: str = "webhook mine") -> None:
    while teller.state(name).waiting_count:
        teller.round(seconds=0.1)


def test_after_its_days_an_event_is_given_up_counted_and_said_and_the_alert_closes_by_itself(
    both: Teller, receiver: Hostile
) -> None:
    both.webhook(receiver.on("/hook", status(500), status(500), reply()), events=["items.collected"])
    both.happen("old 1", "old 2")
    both.happen("nobody asked for this", event="source.failing")
    both.round()
    assert both.alerts() == []
    both.clock.advance(2 * 86_400)
    both.happen("young")
    both.round(timedelta(days=1.5))
    state = both.state()
    assert (state.given_up_count, state.delivered_count, state.waiting_count) == (2, 0, 1)
    (alert,) = both.alerts()
    assert "webhook mine" in alert
    assert "2 events were too old and have been dropped" in alert
    both.round(HOUR)
    assert heard(receiver.seen) == ["old 1", "old 1", "young"]
    assert both.alerts() == []
    assert [name for name, _ in both.events()][-2:] == ["alert.opened", "alert.closed"]


def test_a_young_event_among_old_ones_is_not_given_up_with_them(teller: Teller, receiver: Hostile) -> None:
    teller.webhook(receiver.on("/hook", status(500), reply()), events=["items.collected"])
    teller.happen("old")
    teller.clock.advance(4 * 86_400)
    teller.happen("young")
    teller.clock.advance(-4 * 86_400)
    teller.happen("written late")
    teller.round(timedelta(days=4))
    assert teller.state().given_up_count == 1
    teller.round(HOUR)
    assert heard(receiver.seen) == ["old", "young", "written late"]


def test_five_failures_in_a_row_open_an_alert(teller: Teller, receiver: Hostile) -> None:
    teller.webhook(receiver.on("/hook", status(500)))
    teller.happen("one")
    said = []
    for _ in range(6):
        teller.round(HOUR)
        said.append(len(teller.alerts()))
    assert said == [0, 0, 0, 0, 1, 1]


def test_410_switches_a_webhook_off_until_it_is_resumed(teller: Teller, receiver: Hostile) -> None:
    teller.webhook(receiver.on("/hook", status(410), reply()), events=["items.collected"])
    teller.happen("one")
    teller.round()
    teller.round(HOUR)
    state = teller.state()
    assert (len(receiver.seen), state.is_active) == (1, False)
    assert "410" in state.off_because
    assert len(teller.alerts()) == 1
    teller.store.deliveries.switch_on(state.listener_id, teller.clock.now())
    teller.round()
    assert heard(receiver.seen) == ["one", "one"]
    assert teller.alerts() == []


def test_what_was_cleared_before_a_listener_came_back_is_counted_as_given_up(teller: Teller, receiver: Hostile) -> None:
    teller.webhook(receiver.on("/hook", reply()))
    state = teller.state()
    teller.store.deliveries.switch_off(state.listener_id, "on leave", teller.clock.now())
    teller.happen("one", "two", "three")
    teller.clock.advance(5 * 86_400)
    teller.happen("four")
    clear(teller)
    teller.store.deliveries.switch_on(state.listener_id, teller.clock.now())
    teller.round()
    assert heard(receiver.seen) == ["four"]
    assert teller.state().given_up_count == 3


def test_what_was_forgotten_is_told_to_nobody_and_counts_for_nothing(both: Teller, receiver: Hostile) -> None:
    feed = both.town.feed()
    feed.post("a")
    both.collect(both.follow(feed))
    both.webhook(receiver.on("/hook", reply()))
    about = {"what": "a", "item_id": both.item("a")["id"]}
    both.happen("one")
    both.store.database.write(lambda tx: tell(tx, "watch.matched", about, micros(both.clock.now())))
    both.happen("two")
    both.store.database.write(lambda tx: tell(tx, "watch.matched", about, micros(both.clock.now())))
    assert both.state().waiting_count == 4
    item = Forget("item", "feeds", by="somebody", reason="asked to", item_id=about["item_id"])
    both.store.deletion.forget(item, both.clock.now())
    assert both.state().waiting_count == 2
    both.round()
    assert heard(receiver.seen) == ["one", "two"]
    assert [getattr(both.state(), name) for name in ("waiting_count", "delivered_count", "given_up_count")] == [0, 2, 0]
    assert both.store.deliveries.due(both.clock.now(), 10) == []


def test_only_what_a_webhook_wants_waits_for_it(both: Teller, receiver: Hostile) -> None:
    both.webhook(receiver.on("/hook", status(500)), events=["alert.opened", "items.collected"])
    both.happen("one", "two", event="watch.matched")
    assert both.state().waiting_count == 0
    both.happen("three")
    both.happen("four", event="watch.matched")
    assert both.state().waiting_count == 1


def clear(teller: Teller) -> int:
    days = {"raw_days": 90, "run_days": 90, "attempt_days": 90, "event_days": 3, "metrics_days": 90}
    cleared: int = teller.store.cleanup.clear(teller.clock.now(), **days)["outbox"]
    return cleared


def test_an_event_is_cleared_only_when_every_listener_is_past_it(both: Teller, receiver: Hostile) -> None:
    both.webhook(receiver.on("/quick", reply()), "quick")
    both.webhook(receiver.on("/slow", status(500)), "slow")
    both.happen("one", "two")
    both.round()
    both.clock.advance(4 * 86_400)
    assert clear(both) == 0
    both.round()
    assert both.state("webhook slow").given_up_count == 2
    assert clear(both) == 2
    both.happen("three")
    both.round()
    last = [json.loads(request.body) for request in receiver.seen if request.path == "/quick"][-1]
    # Numbers are never given twice, even once all events are gone; number 3 told of the alert.
    assert (last["id"], last["data"]) == (4, {"what": "three"})


# ── kills ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.process
def test_killed_between_the_delivery_and_its_record_it_sends_one_event_again_and_loses_none(
    both: Teller, receiver: Hostile, database_url: str, tmp_path: Path
) -> None:
    may_answer = Flag()

    def hang(connection: Connection, seen: Seen) -> bool:
        may_answer.wait(600)
        return status(200)(connection, seen)

    both.webhook(receiver.on("/hook", reply(), hang, reply()))
    both.happen("one", "two", "three")
    command = [sys.executable, "-m", "tests.events.teller", database_url, str(tmp_path / "home")]
    killed = subprocess.Popen(command, cwd=ROOT)
    while len(receiver.seen) < 2:
        receiver.arrived.wait(600)
        receiver.arrived.clear()
    killed.kill()
    killed.wait()
    may_answer.set()
    both.app.presence.bury(both.clock.now())
    both.round()
    assert heard(receiver.seen) == ["one", "two", "two", "three"]


# ── where to ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_private_address_is_never_sent_to_unless_it_is_allowed(tmp_path: Path, receiver: Hostile) -> None:
    teller = Teller(tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}", is_private_allowed=False)
    number = teller.webhook(receiver.on("/hook", reply()))
    teller.happen("one")
    teller.round()
    assert receiver.seen == []
    assert "loopback" in teller.state().last_error
    with pytest.raises(AddressRefused):
        webhooks.send_test(teller.app.webhook(number), teller.clock.now())
    teller.close()


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(teller: Teller, receiver: Hostile, code: int) -> None:
    teller.webhook(receiver.on("/hook", redirect(receiver.on("/elsewhere", reply()), code)))
    teller.happen("one")
    teller.round()
    assert [request.path for request in receiver.seen] == ["/hook"]
    assert teller.state().failures_in_a_row == 1


@pytest.mark.parametrize("code", [200, 201, 202, 204, 206])
def test_every_2xx_means_that_it_was_taken(teller: Teller, receiver: Hostile, code: int) -> None:
    teller.webhook(receiver.on("/hook", status(code)))
    teller.happen("one")
    teller.round()
    assert teller.state().delivered_count == 1


def test_a_test_is_sent_at_once_and_says_what_came_of_it(teller: Teller, receiver: Hostile) -> None:
    number = teller.webhook(receiver.on("/hook", reply(), status(410)))
    webhooks.send_test(teller.app.webhook(number), teller.clock.now())
    assert receiver.seen[0].headers["x-catchment-event"] == "webhook.test"
    with pytest.raises(Gone):
        webhooks.send_test(teller.app.webhook(number), teller.clock.now())
    assert teller.state().is_active


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_secrets_of_a_webhook_are_used_and_lie_nowhere_in_plain(
    teller: Teller, receiver: Hostile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    address = (
        receiver.on("/services/T02/B8x4QwZ", status(500)).replace("http://", "http://me:open-sesame-77@")
        + "?token=tok-9f3a77c1&a=1"
    )
    teller.webhook(address)
    teller.happen("one")
    for _ in range(6):
        teller.round(HOUR)
    assert "authorization" in receiver.seen[0].headers
    assert "token=tok-9f3a77c1" in receiver.seen[0].path
    assert receiver.seen[0].path.startswith("/services/T02/B8x4QwZ?")
    said = capsys.readouterr()
    shown = json.dumps(as_json(teller.store.deliveries.page())) + json.dumps(teller.alerts()) + said.out + said.err
    kept = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    for secret in (SECRET, "open-sesame-77", "tok-9f3a77c1", "B8x4QwZ"):
        assert secret not in shown
        assert secret.encode() not in kept


def test_without_its_master_key_no_webhook_is_added(tmp_path: Path) -> None:
    folder, url = tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}"
    teller = Teller(folder, url)
    teller.webhook("https://hooks.example/")
    teller.close()
    teller = Teller(folder, url, master_key=None)
    with pytest.raises(VaultError, match="1 secret is encrypted with one"):
        teller.webhook("https://hooks.example/more")
    assert len(teller.store.deliveries.page()) == 1
    teller.close()


def test_a_secret_that_no_longer_opens_is_a_failure_of_its_webhook_alone(
    teller: Teller, receiver: Hostile, monkeypatch: pytest.MonkeyPatch
) -> None:
    from catchment.credentials.cipher import Cipher

    teller.webhook(receiver.on("/hook", reply()))
    teller.happen("one")
    with monkeypatch.context() as patch:
        patch.setitem(teller.app.__dict__, "cipher", Cipher("quite another master key"))
        teller.round()
    assert "encrypted with key" in teller.state().last_error
    teller.round(HOUR)
    assert heard(receiver.seen) == ["one"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"url": "ftp://a.example/"}, "url"),
        ({"url": "https:///nowhere"}, "url"),
        ({"url": "https://a.example/ b"}, "url"),
        ({"events": ["everything"]}, "events"),
        ({"secret": "short"}, "secret"),
    ],
)
def test_what_could_never_work_is_refused(teller: Teller, given: dict[str, Any], field: str) -> None:
    asked = {"name": "mine", "url": "https://a.example/", **given}
    with pytest.raises(InvalidInput) as refused:
        webhooks.add(
            teller.store.webhooks, teller.app.cipher, asked.pop("name"), asked.pop("url"), teller.clock.now(), **asked
        )
    assert refused.value.field == field
