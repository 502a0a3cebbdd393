"""What strangers wrote cannot do anything on a page: in a title, a text, an author, an address, a source's name."""

from __future__ import annotations

import json

from catchment.platforms.nga.bbcode import render
from catchment.text.html import sanitise
from tests.browser.conftest import EVERY_PLACE, Site
from tests.browser.vectors import VECTORS

PAGES = ("/", "/items", "/items?after=9999999999999999-50", "/search?q=everywhere", *EVERY_PLACE)
SEEN = """elements => {
    const main = document.querySelector("main");
    return [
        document.querySelectorAll("script").length,
        main.querySelectorAll(elements).length,
        [...main.querySelectorAll("form")].every(form => form.action.startsWith(location.origin)),
        [...main.querySelectorAll("a")].map(link => link.protocol),
    ];
}"""
"""How many scripts there are, how many of these elements, whether all forms are sent to us, where links lead."""
MORE_THAN_WORDS = "img, iframe, object, embed, style, link, base, meta, svg script"


def an_archive_of_them(site: Site) -> int:
    """One item for each of them, which says it in every field, as if nothing had been cleaned before it was stored."""
    feed = site.here.town.feed("one", window=len(VECTORS))
    source = site.here.follow(feed, name="The source")
    for text in ("first", "second"):
        for number in range(len(VECTORS)):
            feed.post(f"p{number}", f"{text} everywhere", at=site.here.clock.now())
        site.here.collect(source)
        site.here.clock.advance(60)
    rows = [
        (vector, vector, f"{vector} everywhere", vector, vector, vector, f"https://x.example/{vector}", vector,
         json.dumps([vector]), json.dumps([{"url": vector, "alt": vector}, {"url": f"https://x.example/{vector}"}]),
         f"p{number}")
        for number, (_, vector) in enumerate(VECTORS)
    ]  # fmt: skip
    database = site.here.app.store.database

    def planted(tx):  # type: ignore[no-untyped-def]
        for row in rows:
            tx.run(
                "UPDATE items SET title = ?, html = ?, text = ?, author = ?, author_display_name = ?, author_id = ?, "
                "url = ?, target_url = ?, tags = ?, media = ? WHERE external_id = ?",
                *row,
            )
            said = (row[0], row[0], row[0], row[-1])
            tx.run(
                "UPDATE revisions SET title = ?, text = ?, html = ? "
                "WHERE item_id = (SELECT id FROM items WHERE external_id = ?)",
                *said,
            )
        tx.run("UPDATE sources SET name = ?", "<img src=x onerror=alert(1)>\"'><script>alert(1)</script>")

    database.write(planted)
    site.index()
    return len(rows)


def test_nothing_that_strangers_wrote_happens_and_its_addresses_lead_to_pages_only(site: Site) -> None:
    count = an_archive_of_them(site)
    assert count >= 80
    with site.visitor() as visitor:
        for path in PAGES:
            visitor.open(path)
        for number in range(1, count + 1):
            page = visitor.open(f"/items/{number}")
            scripts, others, are_forms_ours, schemes = page.evaluate(SEEN, MORE_THAN_WORDS)
            # What they wrote can be read, and nothing of it is more than words.
            assert (scripts, others, are_forms_ours) == (1, 0, True), number
            # A bare colon: an address that is none, and leads nowhere.
            assert set(schemes) <= {"http:", "https:", "mailto:", ":"}, number
        visitor.check()


# Where an author of a forum post can put text: between tags, and into them.
FRAMES = (
    "{}", "[url={}]x[/url]", "[url]{}[/url]", "[img]{}[/img]", "[collapse={}]x[/collapse]", "[code]{}[/code]",
    "[flash=video]{}[/flash]", "[table][tr][td colspan={}]x[/table]", "[uid={}]x[/uid]", "[attach]{}[/attach]",
    "[quote]{}[/quote]", "[album={}]{}[/album]", "[@{}]", "[s:{}]", "[dice]{}[/dice]",
)  # fmt: skip


def test_nothing_that_forum_posts_contain_happens(site: Site) -> None:
    """All of them, in all places that BBCode has, on the page of one item for each place."""
    feed = site.here.town.feed("one", window=len(FRAMES))
    source = site.here.follow(feed, name="The source")
    for number in range(len(FRAMES)):
        feed.post(f"p{number}", "first", at=site.here.clock.now())
    site.here.collect(source)
    pages = []
    for frame in FRAMES:
        posts = [render(frame.replace("{}", vector)) for _, vector in VECTORS]
        pages.append("<hr>".join(sanitise(post.html, "https://bbs.nga.cn/") or "" for post in posts))
    site.here.app.store.database.write(
        lambda tx: [
            tx.run("UPDATE items SET html = ?, text = ? WHERE external_id = ?", html, html, f"p{number}")
            for number, html in enumerate(pages)
        ]
    )
    with site.visitor() as visitor:
        for number, html in enumerate(pages, start=1):
            assert len(html) > len(VECTORS)
            page = visitor.open(f"/items/{number}")
            assert page.locator("script").count() == 1
            schemes = page.locator("main a").evaluate_all("links => links.map(a => a.protocol)")
            assert set(schemes) <= {"http:", "https:", "mailto:"}
        visitor.check()
