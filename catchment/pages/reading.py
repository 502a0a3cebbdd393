"""Pages for reading: the list, the search, the item with all that became of it. From what the store tells to HTML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

import nh3
from markupsafe import Markup

from catchment.pages import charts, diffing
from catchment.pages.diffing import Piece
from catchment.pages.showing import Reader, page

_EXCERPT = 280
_TITLE = 180
_MEDIA = {"kind": "image", "alt": None, "width": None, "height": None}
"""What is not said of an attachment."""
_COUNTERS = ("score", "reply_count", "view_count")


# ── lists ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def items_page(reader: Reader, found: Mapping[str, Any]) -> str:
    """The list of items, newest first, with what it is filtered by."""
    rows = [headline(item, item["source_name"]) for item in found["items"]]
    return page("items.html", reader, found=found, rows=rows)


def search_page(reader: Reader, found: Mapping[str, Any]) -> str:
    """What answers to the words, with the words marked."""
    rows = [
        headline(item, item["source_name"])
        | {
            "title_pieces": marked(item["title"] or "", item["title_marks"]),
            "pieces": marked(item["snippet"]["text"], item["snippet"]["marks"]),
        }
        for item in found["items"]
    ]
    return page("search.html", reader, found=found, rows=rows)


def headline(item: Mapping[str, Any], source_name: str | None) -> dict[str, Any]:
    """An item in a list; its address only if it is one that a browser may be sent to."""
    text = " ".join((item["text"] or "")[: _EXCERPT * 4].split())
    title = item["title"] or ""
    return {
        "id": item["id"],
        "kind": item["kind"],
        "platform": item["platform"],
        "title": _cut(title, _TITLE),
        # What has no title begins with its text, and does not repeat it below.
        "text": _cut(title or text, _TITLE),
        "excerpt": _cut(text, _EXCERPT) if title else _cut(text[_TITLE:], _EXCERPT),
        "url": web_address(item["url"]) or web_address(item["target_url"]),
        "source_id": item["source_id"],
        "source": source_name or item["platform"],
        "author": item["author_display_name"] or item["author"],
        "at": item["ordered_at"],
        "edits": item["version"] - 1,
        "is_deleted": item["is_deleted"],
        "is_folded": item["is_folded"],
        "is_pinned": item["is_pinned"],
        "score": item["score"],
        "reply_count": item["reply_count"],
        "last_reply_at": item["last_reply_at"],
        "tags": item["tags"][:6],
        "media_count": len(item["media"]),
        "language": item["language"],
    }


def web_address(url: str | None) -> str | None:
    return url if url and url.startswith(("http://", "https://")) else None


def marked(text: str, marks: Sequence[Sequence[int]]) -> list[tuple[str, bool]]:
    """The text in pieces, and which of them were looked for."""
    pieces, end = [], 0
    for start, stop in marks:
        pieces += [(text[end:start], False), (text[start:stop], True)]
        end = stop
    return [piece for piece in (*pieces, (text[end:], False)) if piece[0]]


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most].rstrip()}…"


# ── one item ──────────────────────────────────────────────────────────────────────────────────────────────────────


def item_page(reader: Reader, known: Mapping[str, Any]) -> str:
    """One item: what it says, what it said before, how it grew, where it comes from and what it points to."""
    item = known["item"]
    return page(
        "item.html",
        reader,
        known=known,
        item=item,
        body=readable(item["html"]) if item["html"] else None,
        links=[_MEDIA | one | {"url": web_address(one["url"])} for one in item["media"]],
        references=[_reference(one, known["held"]) for one in item["references"]],
        history=history(item, known["revisions"]),
        growth=_growth(item, known["counters"], reader),
        replies=[headline(one, None) for one in known["replies"]],
        url=web_address(item["url"]),
        target_url=web_address(item["target_url"]) if item["target_url"] != item["url"] else None,
    )


_TAGS = nh3.ALLOWED_TAGS - {"img", "map", "area"}
_ATTRIBUTES = {"a": {"href", "title"}, **{cell: {"colspan", "rowspan"} for cell in ("td", "th")}}


def readable(html: str) -> Markup:
    """HTML of strangers, once more made harmless at the door: it runs nothing, loads nothing, and its links tell
    nobody where they were followed from. What images there are is listed beside it."""
    clean = nh3.clean(
        html,
        tags=_TAGS,
        attributes=_ATTRIBUTES,
        url_schemes={"http", "https", "mailto"},
        link_rel="noopener noreferrer nofollow",
    )
    return Markup(clean)  # noqa: S704 — just made safe


def history(item: Mapping[str, Any], revisions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each change, newest first: when, why, and what went and came."""
    states = [*revisions, item]
    found = []
    for before, after in pairwise(states):
        found.append(
            {
                "version": before["version"],
                "at": before["valid_to"],
                "from_at": before["valid_from"],
                "edited_at": after.get("source_edited_at", after.get("edited_at")),
                "reasons": before["reasons"],
                "title": _changed(before["title"], after["title"]),
                "text": diffing.shortened(_changed(before["text"], after["text"]) or []),
                "media": _media_changed(before["media"], after["media"]),
            }
        )
    return found[::-1]


def _changed(before: str | None, after: str | None) -> list[Piece] | None:
    """None: nothing has."""
    return diffing.changed(before or "", after or "") if (before or "") != (after or "") else None


def _media_changed(before: Sequence[Mapping[str, Any]], after: Sequence[Mapping[str, Any]]) -> tuple[int, int]:
    """How many went, how many came."""
    old, new = {one["url"] for one in before}, {one["url"] for one in after}
    return len(old - new), len(new - old)


def _reference(one: Mapping[str, Any], held: Mapping[str, int]) -> dict[str, Any]:
    """What it points to: the item itself, where we hold it."""
    external_id = one.get("external_id")
    return {
        "relation": one["relation"],
        "item_id": held.get(external_id) if external_id else None,
        "url": web_address(one.get("url")),
        "name": one.get("author") or external_id or one.get("url"),
        "text": _cut(" ".join((one.get("text") or "").split()), _EXCERPT),
    }


def _growth(item: Mapping[str, Any], points: Sequence[Mapping[str, Any]], reader: Reader) -> charts.Growth | None:
    now = {"at": item["last_seen_at"] or item["first_seen_at"], **{name: item[name] for name in _COUNTERS}}
    told = [*points, now] if points and points[-1]["at"] < now["at"] else points
    series = [
        (name, [(datetime.fromisoformat(one["at"]), one[name]) for one in told if one[name] is not None])
        for name in _COUNTERS
    ]
    return charts.growth(series, {name: reader.speech(f"counter_{name}") for name in _COUNTERS})
