"""Finds the entries of a feed in its bytes, without parsing them: those that did not change need not be parsed."""

from __future__ import annotations

from catchment.lazy import pattern
from catchment.model import Answer, Pieces
from catchment.text import charset

# Root element: its entries.
ENTRIES = {b"rss": b"item", b"feed": b"entry"}
ROOT = pattern(rb"<(rss|feed)(?=[\s>])")
ROOT_WITHIN = 2_000
AFTER_NAME = b" \t\r\n>"
MOST_HOPS = 1_000
# Elements around the entries whose text changes with every answer, and which no item depends on.
DATES = pattern(rb"<(lastBuildDate|pubDate|updated)>[^<]*</\1>")


def pieces(answer: Answer) -> Pieces | None:
    """Returns where the entries of an RSS 2.0 or Atom feed are; None for anything else, for a feed that may have to be
    repaired, and for one that is not labelled as UTF-8. Whether it is UTF-8, parsing it shows (`is_transcoded`)."""
    body = answer.body
    root = ROOT.search(body, 0, ROOT_WITHIN)
    if root is None or charset.claimed(body, answer.headers.get("content-type")) not in (None, "utf-8"):
        return None
    entries = _spans(body, ENTRIES[root[1]])
    if not entries:
        return None
    edges = [0, *(edge for entry in entries for edge in entry), len(body)]
    between = (body[edges[at] : edges[at + 1]].strip() for at in range(0, len(edges), 2))
    # Without the white space, of which there is more where there are more entries.
    return Pieces(tuple(entries), DATES.sub(b"", b"\n".join(filter(None, between))))


def _spans(body: bytes, name: bytes) -> list[tuple[int, int]]:
    """Returns where elements of this name begin and end; none if they cannot be distinguished with certainty."""
    opening, closing = b"<" + name, b"</" + name + b">"
    spans: list[tuple[int, int]] = []
    before, start = 0, body.find(opening)
    while start >= 0:
        after = start + len(opening)
        following = body.find(opening, after)
        if body[after : after + 1] not in AFTER_NAME:  # <items>
            start = following
            continue
        # From behind: the end of an entry is just before the next one.
        end = body.rfind(closing, after, following if following >= 0 else len(body))
        if end < 0 or (body.find(b"!", before, start) >= 0 and _is_hidden(body, start, before)):
            return []
        if body.find(b"!", after, end) >= 0 and _is_hidden(body, end, after):
            return []
        before = end + len(closing)
        spans.append((start, before))
        start = following
    return spans


def _is_hidden(body: bytes, place: int, start: int) -> bool:
    """Whether a place is in a comment or a CDATA section that begins after `start`, or there is a declaration."""
    # By hops from one rare byte to the next: a search for several bytes takes many times as long.
    at = body.find(b"!", start, place)
    for _ in range(MOST_HOPS):
        if at < 0:
            return False
        if body[at - 1 : at] != b"<":
            end = at
        elif body.startswith(b"[CDATA[", at + 1):
            end = body.find(b"]]>", at)
        elif body.startswith(b"--", at + 1):
            end = body.find(b"-->", at + 3)
        else:
            return True
        if not at <= end < place:
            return True
        at = body.find(b"!", end + 1, place)
    return True
