"""Threads and audits as people see them: by keys, on a phone, in the dark, and with nothing that axe calls serious."""

from __future__ import annotations

from collections import deque
from datetime import timedelta
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

from catchment.errors import ServerTrouble
from catchment.model import Item, Reference
from catchment.sources.add import follow
from tests import forum as forums
from tests.browser.conftest import Site
from tests.store.desk import Desk as StoreDesk

MINUTE = timedelta(minutes=1)
PHONE = {"width": 390, "height": 844}
WORDS = (
    "I have mended nets for thirty years, and the knot that holds is the one that you can still undo with cold hands.",
    "Do you have a source for that? The harbour office says otherwise: <a href='https://x.example/a'>their table</a>.",
    "<blockquote><p>the knot that holds</p></blockquote><p>It depends on the rope. 河流与大海之间没有边界。</p>",
    "<p>Measured:</p><pre><code>knot(a, b) = 1200 N\nknot(b, a) = 940 N, with wet hands and old rope</code></pre>",
    "Thanks.",
)


def said(at: StoreDesk, thread: str, key: str, minute: int, **more: Any) -> Item:
    return Item(
        key,
        kind="comment",
        created_at=at.now - 900 * MINUTE + minute * MINUTE,
        html=f"<p>{WORDS[minute % len(WORDS)]}</p>",
        author=f"user_{minute % 7}",
        thread_id=thread,
        **more,
    )


def opening(at: StoreDesk, key: str, title: str, thread: str, **more: Any) -> Item:
    created = at.now - 999 * MINUTE
    html = "<p>Which knot do you use for the seam, and why? I have read both answers in old books.</p>"
    return Item(
        key,
        kind="post",
        title=title,
        html=html,
        author="ada",
        created_at=created,
        thread_id=thread,
        is_head=True,
        **more,
    )


def comments(at: StoreDesk, thread: str, count: int) -> list[Item]:
    """A tree: some answer the opening post, the others one of those before them; one branch is deep."""
    found = []
    for number in range(1, count):
        parent = thread if number % 4 == 1 else f"{thread}-{number - 1 if number < 20 else number // 2}"
        if number in (18, 19, 20):
            parent = f"{thread}-{number - 1}"
        more: dict[str, Any] = {"score": 40 - number, "references": (Reference("replied_to", external_id=parent),)}
        if number == 6:
            more |= {"is_deleted": True, "deleted_by": "author"}
        found.append(said(at, thread, f"{thread}-{number}", number, **more))
    chain = [f"{thread}-1", *(f"{thread}-deep{number}" for number in range(12))]
    found += [
        said(at, thread, key, 300 + number, references=(Reference("replied_to", external_id=chain[number]),))
        for number, key in enumerate(chain[1:])
    ]
    return found


def a_tree(site: Site, kind: str, thread: str, count: int = 40, **settings: Any) -> int:
    """Stores a thread of comments; returns the id of its opening post."""
    at = StoreDesk(site.here.app.store, site.here.clock)
    head = opening(at, thread, f"Which knot for a net? ({kind})", thread, reply_count=count + 14, score=213)
    at.show(at.follow(kind, kind, settings=settings), head, *comments(at, thread, count))
    at.presence.leave(at.now)
    return int(at.item(thread)["id"])


def floors(site: Site, kind: str, thread: str, count: int = 40) -> int:
    """Stores a thread of numbered posts, some of which answer another one by its number; two are missing, one was
    deleted, one has no number."""
    at = StoreDesk(site.here.app.store, site.here.clock)
    head = opening(
        at, f"t{thread}", f"织网用哪种结? ({kind})", thread, floor_number=1, reply_count=count, last_reply_at=at.now
    )
    kept = []
    for number in range(2, count + 1):
        parent = 1 if number % 3 == 2 else number - 1
        named = Reference("replied_to", external_id=f"t{thread}" if parent == 1 else None)
        more: dict[str, Any] = {"parent_floor": parent, "references": (named,)} if kind != "nga_forum" else {}
        if number in (7, 8):
            continue
        post = said(at, thread, f"p{thread}{number}", number, floor_number=number, is_deleted=number == 5, **more)
        kept.append(post.replace(floor_number=None) if number == 12 else post)
    at.show(at.follow(kind, kind), head, *kept)
    at.presence.leave(at.now)
    return int(at.item(f"t{thread}")["id"])


def an_audit(site: Site) -> list[str]:
    """A board is read and audited, with an error on one page; returns the pages that show it."""
    here = site.here
    board = forums.Board(here.clock)
    here.play(board, forums.PLATFORM)
    app = here.app
    source, _ = follow(app.store, app.secrets, app.platforms, "forum_board", "board:1", here.clock.now())
    thread = board.thread(7, pages=3, title="Tides & <harbours>")
    board.thread(8, title="Lighthouses")
    here.collect(source)
    (run,) = app.store.threads.board_runs(source.id)
    forums.take_out(app.store, "7", 5, 25, 26)
    del thread.floors[25]
    board.says["thread 7 1"] = deque([ServerTrouble("the forum is out of order", status=500)])
    audit = app.floor_audit().run("test", is_repairing=True)
    return [
        *("/audits", f"/audits/{audit.id}", "/audits/replies"),
        *(f"/sources/{source.id}/board-runs", f"/runs/{run.run_id}/threads"),
    ]


def test_threads_and_audits_are_read_by_keys_and_fit_a_phone(site: Site) -> None:
    tree = a_tree(site, "reddit", "t3_a", 24, comments=True)
    numbered = floors(site, "nga_forum", "77")
    audits = an_audit(site)
    with site.visitor(viewport=PHONE, color_scheme="dark") as visitor:
        found = []
        for path in (f"/items/{tree}", f"/items/{numbered}?floor=2", *audits):
            page = visitor.open(path)
            if not page.evaluate("document.documentElement.scrollWidth <= innerWidth"):
                found.append(f"{path}: is wider than its window")
            found += [
                f"{path}: {violation['id']}: {node['target']}"
                for violation in Axe().run(page).response["violations"]
                if violation["impact"] in ("serious", "critical")
                for node in violation["nodes"]
            ]
        assert found == []
        # From reply to reply, and into the page of one: what it answers stands above, what answers it below.
        page = visitor.open(f"/items/{tree}")
        first = page.locator("#replies .reply").first
        for _ in range(3):
            page.keyboard.press("j")
        page.keyboard.press("k")
        assert page.evaluate("document.activeElement.closest('.reply').id") == page.locator("#replies .reply").nth(
            1
        ).get_attribute("id")
        page.keyboard.press("Enter")
        expect(page.locator("nav.context li")).to_have_count(2)
        page.go_back()
        # A branch is folded by keys.
        first.locator("summary").first.focus()
        page.keyboard.press("Enter")
        expect(first.locator(".reply").first).to_be_hidden()
        # A deep one has a page of its own.
        page.locator("a", has_text="1 more reply").first.focus()
        page.keyboard.press("Enter")
        expect(page.locator("#replies .reply").first).to_be_visible()
        # Numbers are jumped to.
        page = visitor.open(f"/items/{numbered}")
        page.locator("input[name=floor]").fill("30")
        page.keyboard.press("Enter")
        expect(page.locator("#replies .reply .number").first).to_have_text("#30")
        visitor.check()
