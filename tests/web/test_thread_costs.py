"""A thread of ten thousand replies costs no more than a short one: neither its first page nor a late one."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from markupsafe import Markup

from catchment.model import Item, Reference
from catchment.store.database import Transaction
from catchment.web.pages.thread_view import ThreadCursors, ThreadSection, thread_section
from tests.store.desk import Desk as StoreDesk
from tests.store.desk import post
from tests.town import TownApp

MANY = 10_000


class Thread:
    """A thread on SQLite, with replies that are copies of its first one."""

    def __init__(self, town: TownApp, kind: str, **head: Any) -> None:
        self.town = town
        at = StoreDesk(town.app.store, town.clock)
        opening = post("head", created_at=at.now - timedelta(days=9), thread_id="head", is_head=True, **head)
        first = Item(
            "first",
            kind="comment",
            text="said",
            created_at=at.now - timedelta(days=8),
            thread_id="head",
            floor_number=1 if head else None,
            references=(Reference("replied_to", external_id="head"),),
        )
        at.show(at.follow("forum", kind), opening, first)
        at.presence.leave(at.now)
        self.head = town.app.store.items.get(at.item("head")["id"])
        self.first = at.item("first")["id"]

    def copy(self, count: int, **changed: str) -> None:
        """Adds replies, from number 2 on; `changed` says in SQL what is different about each."""
        changed = {
            "id": "c.id + n.number",
            "external_id": "'r' || n.number",
            "ordered_at": "c.ordered_at + n.number",
            **changed,
        }

        def copied(tx: Transaction) -> None:
            names = [name for (name,) in tx.all("SELECT name FROM pragma_table_info('items')")]
            tx.run(
                f"""
                WITH RECURSIVE n(number) AS (SELECT 2 UNION ALL SELECT number + 1 FROM n WHERE number < {count})
                INSERT INTO items ({", ".join(names)})
                SELECT {", ".join(changed.get(name, f"c.{name}") for name in names)} FROM items c CROSS JOIN n
                 WHERE c.id = ?
                """,
                self.first,
            )

        self.town.app.store.database.write(copied)

    def page(self, **cursors: Any) -> ThreadSection:
        return thread_section(self.town.app, self.head, Markup, ThreadCursors(**cursors))

    def cost(self, work: Callable[[], object]) -> tuple[int, int]:
        """Statements, and the steps of SQLite's virtual machine: what is visited, whatever the machine's speed."""
        statements = steps = 0

        def begin(connection: Any, is_postgres: bool) -> Transaction:
            def step() -> int:
                nonlocal steps
                steps += 1
                return 0

            def said(_: str) -> None:
                nonlocal statements
                statements += 1

            connection.set_progress_handler(step, 10)
            connection.set_trace_callback(said)
            return Transaction(connection, is_postgres)

        database = self.town.app.store.database
        database.transaction = begin  # type: ignore[assignment]
        try:
            work()
        finally:
            database.transaction = Transaction
            database.read(lambda tx: tx.cursor.connection.set_progress_handler(None, 0))
            database.read(lambda tx: tx.cursor.connection.set_trace_callback(None))
        return statements, steps


def test_a_late_page_of_ten_thousand_comments_costs_no_more_than_the_first(town: TownApp) -> None:
    thread = Thread(town, "reddit")
    thread.copy(60)
    few = thread.cost(thread.page)
    town.app.store.database.write(lambda tx: tx.run("DELETE FROM items WHERE id > ?", thread.first))
    # One of them in ten is a reply to another reply, the others to the opening post.
    thread.copy(MANY, parent_id="CASE WHEN n.number % 10 = 5 THEN 'r' || (n.number - 2) ELSE c.parent_id END")
    late = {"after": (int(thread.town.app.store.items.get(thread.first + 9_000).ordered_at.timestamp() * 1e6), 0)}
    assert len(thread.page().replies) == len(thread.page(**late).replies) == 30
    assert thread.page(**late).replies[0].item.external_id > "r8"
    first_page, late_page = thread.cost(thread.page), thread.cost(lambda: thread.page(**late))
    assert late_page[0] <= first_page[0] <= 15
    assert late_page[1] <= 1.1 * first_page[1]
    # Beyond how many there are, which is counted within an index, nothing grows with the thread.
    _, counting = thread.cost(lambda: town.app.store.replies.stored_count(thread.head))
    assert first_page[1] - counting <= 2 * few[1]
    # The last page also looks for replies whose parent is not stored.
    end = {"after": (int(town.app.store.items.get(thread.first + 9_990).ordered_at.timestamp() * 1e6), 0)}
    assert thread.page(**end).next is None
    assert thread.cost(lambda: thread.page(**end))[1] <= 4 * first_page[1]


def test_a_reply_with_ten_thousand_replies_is_one_branch_of_its_page(town: TownApp) -> None:
    thread = Thread(town, "reddit")
    thread.copy(MANY, parent_id="CASE WHEN n.number < 40 THEN c.parent_id ELSE 'r2' END")
    (broad,) = [reply for reply in thread.page().replies if reply.item.external_id == "r2"]
    assert (len(broad.replies), broad.hidden_count) == (300, MANY - 39 - 300)
    _, steps = thread.cost(thread.page)
    _, counting = thread.cost(lambda: town.app.store.replies.stored_count(thread.head))
    # Its replies are compared and counted, both within an index; a page of them is read.
    assert steps <= 3 * counting


def test_a_late_page_of_ten_thousand_floors_costs_no_more_than_the_first(town: TownApp) -> None:
    thread = Thread(town, "nga_forum", floor_number=0)
    thread.copy(MANY, floor_number="n.number", parent_id="NULL")
    pages = [{"floor": 1}, {"floor": 5_000}, {"floor": MANY - 20}]
    assert [len(thread.page(**page).floors or ()) for page in pages] == [30, 30, 21]
    (first, *_), *others = costs = [thread.cost(lambda page=page: thread.page(**page)) for page in pages]  # type: ignore[misc]
    assert first <= 12
    assert [statements for statements, _ in others] == [first, first + 1]
    # The last page also looks for posts without a number; two counts within an index say that there are none.
    assert costs[1][1] <= 1.1 * costs[0][1]
    assert costs[2][1] <= 4 * costs[0][1]
