"""People are notified by Apprise: a burst is one message, nothing is lost, and a message holds no secret or markup."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from catchment.clock import micros
from catchment.collect.tasks import request_task
from catchment.errors import AddressRefused, Conflict, InvalidInput, Missing, Refused
from catchment.events import notifications
from catchment.events.notifications import composed, line_of
from catchment.fetch.messenger import Messenger
from catchment.jobs import run_watches
from catchment.logs import redact
from catchment.messages import Translator, message
from catchment.model import AlertRequest, Event, Severity, Watch, as_json
from catchment.store.sources.alerts import raise_alert
from catchment.text.markup import bare_link, without_markup
from tests.events.teller import Teller
from tests.hostile import Hostile, Seen, reply, status

HOUR = timedelta(hours=1)
TOKEN = "a-token-that-nobody-may-see"


def notify(teller: Teller, url: str, name: str = "team", **more: Any) -> int:
    """A notification by Apprise's JSON service, to that HTTP address."""
    address = f"json://user:{TOKEN}@{url.removeprefix('http://')}"
    return notifications.add(teller.store.webhooks, teller.app.cipher, name, address, teller.clock.now(), **more)


def alert(teller: Teller, number: int, severity: Severity = Severity.P1) -> None:
    alarm = AlertRequest(f"alert {number}", f"alert number {number} is open", severity)
    teller.store.database.write(lambda tx: raise_alert(tx, alarm, micros(teller.clock.now())))


def lines(seen: list[Seen]) -> list[str]:
    """What was sent, in the order in which it arrived."""
    return [line for request in seen for line in json.loads(request.body)["message"].splitlines()]


def test_fifty_alerts_in_a_minute_are_at_most_three_messages_and_all_arrive_in_order(
    both: Teller, receiver: Hostile
) -> None:
    notify(both, receiver.on("/in", reply()))
    for number in range(50):
        alert(both, number)
        both.happen("noise", "noise", "noise")
        both.round(timedelta(seconds=1.2))
    both.round(timedelta(seconds=30))
    assert 1 < len(receiver.seen) <= 3
    assert lines(receiver.seen) == [f"P1: alert number {number} is open" for number in range(50)]
    state = both.state("notification team")
    assert (state.delivered_count, state.waiting_count, state.url) == (50, 0, "json://…")


def test_a_receiver_that_fails_for_an_hour_gets_all_of_it_afterwards_in_order(both: Teller, receiver: Hostile) -> None:
    notify(both, receiver.on("/in", *[status(503)] * 8, reply()))
    for number in range(120):
        alert(both, number)
        both.round(timedelta(seconds=30))
    assert len(receiver.seen) == 8, "it is asked less and less often"
    for _ in range(5):
        both.round(HOUR)
    got = [line for line in lines(receiver.seen[8:]) if "number" in line]
    assert got == [f"P1: alert number {number} is open" for number in range(120)]
    assert both.state("notification team").given_up_count == 0


def test_alerts_are_chosen_by_severity_and_events_by_name(teller: Teller, receiver: Hostile) -> None:
    notify(teller, receiver.on("/urgent", reply()), "urgent", least_severity=Severity.P0)
    notify(teller, receiver.on("/matches", reply()), "matches", events=["watch.matched"])
    alert(teller, 1, Severity.P2)
    alert(teller, 2, Severity.P0)
    assert teller.state("notification urgent").waiting_count == 1
    assert teller.state("notification matches").waiting_count == 0
    teller.round()
    assert [(request.path, lines([request])) for request in receiver.seen] == [
        ("/urgent", ["P0: alert number 2 is open"])
    ]


def test_a_match_names_the_watch_and_links_the_item_without_the_strangers_markup(
    teller: Teller, receiver: Hostile
) -> None:
    notify(teller, receiver.on("/in", reply()), language="zh")
    teller.store.watches.add(Watch("chips", ("芯片",)), teller.clock.now())
    feed = teller.town.feed()
    feed.post("1", title="芯片 @everyone [click](http://evil.example) *now* `rm` a_b _c_ <@U1>")
    teller.collect(teller.follow(feed))
    run_watches(teller.app)
    teller.round()
    (line,) = lines(receiver.seen)
    assert "chips" in line
    assert "芯片" in line
    assert not set("<>@[]*`") & set(line)
    assert "://evil" not in line
    assert "_c_" not in line
    assert "a_b" in line
    assert line.endswith(bare_link(teller.store.items.newest(1)[0].url))


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "Task for rss completed: 2 of 2 done, 1 failed, 1 new items"),
        ("zh", "rss 的任务"),
    ],
)
def test_the_end_of_a_task_is_told_with_its_figures(
    teller: Teller, receiver: Hostile, language: str, words: str
) -> None:
    notify(teller, receiver.on("/in", reply()), language=language, events=["task.finished"])
    feed, broken = teller.town.feed("good"), teller.town.feed("broken")
    feed.post("1")
    broken.says.append(Missing("nobody of that name", status=404))
    app = teller.app
    request_task(app.store, app.platforms, "rss", [feed.url, broken.url], 10, teller.clock.now())
    app.task_runner().run()
    teller.round()
    (line,) = lines(receiver.seen)
    assert line.startswith(words)
    assert "2" in line


def test_messages_are_in_the_chosen_language(teller: Teller, receiver: Hostile) -> None:
    notify(teller, receiver.on("/in", reply()), language="zh")
    alarm = AlertRequest(
        "host", message("alert.source_unreachable", host="a.example", span="1 h", code="TIMEOUT_ERROR")
    )
    teller.store.database.write(lambda tx: raise_alert(tx, alarm, micros(teller.clock.now())))
    teller.round()
    (line,) = lines(receiver.seen)
    assert line.startswith("P1")
    assert "a.example" in line
    assert "has not answered" not in line


def test_a_test_message_arrives_at_once_and_its_failure_says_why_without_the_address(
    teller: Teller, receiver: Hostile
) -> None:
    number = notify(teller, receiver.on("/in", reply(), status(401)))
    notification = teller.app.notification(number)
    notifications.send_test(notification, teller.clock.now())
    assert lines(receiver.seen) == ["This is a test message from catchment."]
    with pytest.raises(Refused, match="401") as failed:
        notifications.send_test(notification, teller.clock.now())
    assert TOKEN not in failed.value.message


def test_the_address_is_in_no_file_no_view_and_no_log_line(tmp_path: Path, teller: Teller, receiver: Hostile) -> None:
    notify(teller, receiver.on("/in", status(500)))
    alert(teller, 1)
    teller.round()
    teller.round(HOUR)
    shown = json.dumps([as_json(listener) for listener in teller.store.deliveries.page()], ensure_ascii=False)
    assert "json://…" in shown
    assert TOKEN not in shown + redact(f"to user:{TOKEN}@")
    leaking = Event(1, "alert.opened", teller.clock.now(), {"severity": "P0", "message": f"it said {TOKEN}"})
    assert TOKEN not in line_of(leaking, Translator())
    teller.close()
    assert all(TOKEN.encode() not in file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())


def test_an_address_in_our_own_network_is_refused_unless_that_is_allowed(receiver: Hostile) -> None:
    address = f"json://{receiver.on('/in', reply()).removeprefix('http://')}"
    with pytest.raises(AddressRefused, match="loopback"):
        Messenger(address).send(notifications.ChatMessage("a", "b"))
    assert receiver.seen == []
    Messenger(address, allows_private=True).send(notifications.ChatMessage("a", "b"))
    assert lines(receiver.seen) == ["b"]


@pytest.mark.parametrize(
    ("address", "more", "field"),
    [
        ("nonsense", {}, "url"),
        ("nonsense://x", {}, "url"),
        ("json://a json://b", {}, "url"),
        ("json://a.example/\n", {}, "url"),
        ("json://a.example", {"events": ["everything"]}, "events"),
        ("json://a.example", {"language": "fr"}, "language"),
        ("json://a.example", {"name": ""}, "name"),
    ],
)
def test_what_could_never_work_is_refused_by_its_name(
    teller: Teller, address: str, more: dict[str, Any], field: str
) -> None:
    values = {"name": "team", **more}
    with pytest.raises(InvalidInput) as refused:
        notifications.add(
            teller.store.webhooks, teller.app.cipher, values.pop("name"), address, teller.clock.now(), **values
        )
    assert refused.value.field == field


def test_a_name_belongs_to_one_listener(teller: Teller, receiver: Hostile) -> None:
    url = receiver.on("/in", reply())
    teller.webhook(url, "team")
    with pytest.raises(Conflict, match="webhook named 'team'"):
        notify(teller, url)


def test_a_message_holds_as_many_lines_as_fit_and_cuts_them_before_it_leaves_some_for_later() -> None:
    text = "x" * 300
    sent, count = composed([text] * 10, 1_000, lambda count: f"{count} lines")
    assert count == 10
    assert len(sent.body) <= 1_000
    assert all(line.endswith("…") for line in sent.body.splitlines())
    sent, count = composed([text] * 100, 1_000, lambda count: f"{count} lines")
    assert (count, len(sent.body.splitlines()), sent.title) == (12, 12, "12 lines")
    assert composed(["a", "b"], 1_000, lambda count: "t") == (("t", "a\nb"), 2)
    assert composed([text], 10, lambda count: "t")[1] == 1


def test_text_keeps_its_words_and_loses_what_services_obey() -> None:
    assert without_markup("a_b HOT_CACHE `catchment status`\n# x") == "a_b HOT_CACHE 'catchment status' # x"
    assert without_markup("# heading") == "#. heading"
    assert bare_link("javascript:alert(1)") == ""
    assert bare_link("https://a.example/?q=1&b=%20") == "https://a.example/?q=1&b=%20"
    assert bare_link("https://a.example/x_(1)<b>@c") == "https://a.example/x%5F%281%29%3Cb%3E%40c"
