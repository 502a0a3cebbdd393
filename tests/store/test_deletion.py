"""What is forgotten leaves for good, is not collected again, and leaves a record without content."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from threading import Thread

from catchment.clock import micros
from catchment.model import Item, Reference, Source
from catchment.store.delivery.events import tell
from catchment.store.items.deletion import Forget
from catchment.store.search.lists import Filter
from tests.store.desk import Desk, opened, post

SECRET = "a word that nobody else says"


def everything(desk: Desk) -> str:
    """All that the database holds, as text."""
    from catchment.store.schema import metadata

    read = desk.store.database.read
    rows = [row for table in metadata.tables for row in read(lambda tx, table=table: tx.all(f"SELECT * FROM {table}"))]  # type: ignore[misc]
    return "\n".join(
        bytes(value).decode("latin-1") if isinstance(value, bytes | memoryview) else str(value)
        for row in rows
        for value in row
    )


def by(author: str, key: str, text: str = SECRET, **more: object) -> Item:
    return post(key, text, author=author, author_id=f"id of {author}", url=f"https://a.example/{key}", **more)


def told(desk: Desk) -> tuple[Source, Source]:
    """Two boards; what Ann says is in texts, revisions, answers, quotes and events."""
    one, two = desk.follow("r/one", "reddit"), desk.follow("r/two", "reddit")
    desk.show(one, by("Ann", "a1"), by("bob", "b1", "hello"), body=SECRET.encode())
    desk.show(one, by("Ann", "a1", f"{SECRET}, edited"), body=f"{SECRET} too".encode())
    quote = Reference("quoted", external_id="a1", author="Ann", text=SECRET)
    desk.show(two, by("bob", "b2", "look", references=(quote,)), body=b"other")
    event = {"watch": "w", "item": {"id": desk.item("a1")["id"], "title": SECRET}}
    desk.store.database.write(lambda tx: tell(tx, "watch.matched", event, micros(desk.now)))
    return one, two


def test_nothing_of_a_forgotten_author_is_left(desk: Desk) -> None:
    told(desk)
    record = desk.store.deletion.forget(Forget("author", "reddit", "me", "requested", author="ann"), desk.now)
    counts = {name: getattr(record, f"{name}_count") for name in ("item", "revision", "answer", "event")}
    assert counts == {"item": 1, "revision": 1, "answer": 2, "event": 1}
    assert (record.what, record.platform, record.forgotten_by) == ("author", "reddit", "me")
    assert (record.reason, record.is_finished) == ("requested", True)
    held = everything(desk)
    assert SECRET not in held
    assert "Ann" not in held
    assert {item.external_id for item in desk.store.items.newest()} == {"b1", "b2"}
    assert desk.store.deletion.records() == [record]


def test_the_index_does_not_keep_a_forgotten_name_or_one_borne_before(desk: Desk) -> None:
    source, _ = told(desk)
    desk.show(source, by("Annabel", "a3"))
    desk.store.index.advance()
    desk.show(source, by("Ann", "a3", "under another name"))
    desk.store.index.advance()
    desk.store.deletion.forget(Forget("author", "reddit", "me", author="Ann"), desk.now)
    assert "Ann" not in everything(desk)
    assert [item.author for item in desk.store.items.listed(Filter(author="bob"), 10).items] == ["bob", "bob"]


def test_no_forgotten_word_is_left_in_the_bytes_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "catchment.db"
    with closing(Desk(opened(f"sqlite:///{file}", tmp_path))) as desk:
        store = desk.store
        source = desk.follow("r/one", "reddit")
        for number in range(60):
            desk.show(source, by("bob", f"b{number}", f"ordinary words, {number}"))
            if number == 30:
                desk.show(source, by("Ann", "a1", "the password was zyzzyva"), body=b"zyzzyva, too")
                desk.show(source, by("Ann", "a1", "not zyzzyva any more"))
            store.index.advance()
        assert b"zyzzyva" in file.read_bytes() + file.with_name("catchment.db-wal").read_bytes()
        store.deletion.forget(Forget("author", "reddit", "me", author="Ann"), desk.now)
        assert b"zyzzyva" not in file.read_bytes() + file.with_name("catchment.db-wal").read_bytes()
        assert store.search.find("ordinary", Filter(), limit=100).count == 60


def test_an_answer_that_shows_what_is_forgotten_is_not_kept(desk: Desk) -> None:
    one, two = told(desk)
    desk.store.deletion.forget(Forget("author", "reddit", "me", author="Ann"), desk.now)
    desk.show(one, by("Ann", "a1"), by("bob", "b9", "hello"), body=SECRET.encode())
    desk.show(two, by("bob", "b8", "hello"), body=b"nothing of hers")
    held = everything(desk)
    assert (SECRET in held, "nothing of hers" in held) == (False, True)


def test_what_is_being_written_while_its_author_is_forgotten_is_forgotten_too(desk: Desk) -> None:
    source, _ = told(desk)
    wanted = Forget("author", "reddit", "me", author="Ann")
    forgetting = Thread(target=desk.store.deletion.forget, args=(wanted, desk.now))

    def meanwhile() -> None:
        forgetting.start()
        # It has to wait for this page; how long we look on decides nothing.
        forgetting.join(0.3)

    desk.show(source, by("Ann", "a7"), body=SECRET.encode(), meanwhile=meanwhile)
    forgetting.join()
    assert SECRET not in everything(desk)


def test_what_a_forgotten_author_says_later_is_not_collected(desk: Desk) -> None:
    one, two = told(desk)
    desk.store.deletion.forget(Forget("author", "reddit", "me", author="Ann"), desk.now)
    conclusion = desk.show(one, by("ANN", "a1"), by("ann", "a9"), by("bob", "b9", "hello"))
    assert (conclusion.counts.new, conclusion.counts.duplicate) == (1, 2)
    assert desk.show(two, post("a1", "the same id without its author")).counts.new == 0
    # Elsewhere somebody else may bear the name.
    assert desk.show(desk.follow("news"), by("Ann", "a1", "another")).counts.new == 1


def test_a_forgotten_item_does_not_come_back_and_its_author_may_go_on(desk: Desk) -> None:
    source, _ = told(desk)
    item_id = desk.item("a1")["id"]
    record = desk.store.deletion.forget(Forget("item", "reddit", "me", item_id=item_id), desk.now)
    assert (record.what, record.item_count) == ("item", 1)
    assert SECRET not in everything(desk)
    conclusion = desk.show(source, by("Ann", "a1"), by("Ann", "a2", "something else"))
    assert (conclusion.counts.new, conclusion.counts.duplicate) == (1, 1)


def test_forgetting_once_more_finishes_what_was_cut_off(desk: Desk) -> None:
    told(desk)
    wanted = Forget("author", "reddit", "me", author="Ann")

    def cut(_: int) -> None:
        raise KeyboardInterrupt

    try:
        desk.store.deletion.forget(wanted, desk.now, cut)
    except KeyboardInterrupt:
        assert [record.is_finished for record in desk.store.deletion.records()] == [False]
    assert desk.store.deletion.forget(wanted, desk.now).is_finished
    assert SECRET not in everything(desk)


def test_many_items_of_one_author_leave_in_batches(desk: Desk) -> None:
    source = desk.follow("r/one", "reddit")
    desk.show(source, *(by("Ann" if number % 2 else "bob", f"{number}") for number in range(600)))
    seen: list[int] = []
    desk.store.deletion.forget(Forget("author", "reddit", "me", author="id of Ann"), desk.now, seen.append)
    assert seen == [200, 300]
    assert len(desk.store.items.newest(1000)) == 300


def test_while_nothing_is_forgotten_a_page_asks_about_one_row(desk: Desk) -> None:
    source = desk.follow()
    desk.show(source, post("a"))
    assert desk.count("forgotten_marks") == 0
    assert desk.show(source, post("b")).counts.new == 1
