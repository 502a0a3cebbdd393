"""Lists of sources as files: OPML, CSV and JSON, read and written. Pure: text in, records out, and back.

Which of the three a file is, its content tells, never its name. A row that cannot be used is reported with its place
and the reason; the rest goes on. Files come from strangers: OPML with a document type, and so with entities of its
own, is refused, and so is what is too large or too deep.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import quoteattr

import msgspec

from catchment import charset
from catchment.errors import InvalidInput
from catchment.model import Record

FORMATS = ("opml", "csv", "json", "communities")
MOST_BYTES = 20_000_000
MOST_ROWS = 100_000
FEED_KINDS = ("rss", "digest_feed")
"""What OPML can hold."""
UNTOLD_KIND = "rss"
"""Of a row that tells no kind: lists of feeds are what most programs exchange."""
UNTOLD_PRIORITY = "medium"
COMMUNITY_KIND = "reddit"
"""What a pool of communities holds."""
_DEEPEST = 100
_LONGEST_CATEGORY = 100
HELPS = (
    "give OPML, CSV with a column `target` (or `url`), JSON: a list of objects with `kind` and `target`, "
    "or a pool of communities: a list of objects with `name`, `tier`, `categories` and `quality_score`"
)


class Listed(Record, frozen=True):
    """One source, as a list names it."""

    target: str
    kind: str = UNTOLD_KIND
    name: str | None = None
    categories: tuple[str, ...] = ()
    priority: str | None = None
    """None: not told."""
    interval_minutes: int | None = None
    quality_score: float | None = None
    settings: dict[str, Any] = {}
    credential: str | None = None
    """By its name: no list holds a secret."""
    is_paused: bool = False
    is_of_pool: bool = False
    """A pool of communities names it: if it is followed already, what the pool says is taken over."""
    place: str = ""
    """Where in the file it stands, for people."""


class BadRow(Record, frozen=True):
    """A row that could not be used."""

    place: str
    target: str
    reason: str


class SourceList(Record, frozen=True):
    """What a file holds."""

    format: str
    entries: tuple[Listed, ...]
    bad_rows: tuple[BadRow, ...] = ()


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────


def read(body: bytes) -> SourceList:
    """The sources that a file lists. Raises InvalidInput if it is no list at all."""
    if len(body) > MOST_BYTES:
        raise InvalidInput(f"the list is larger than {MOST_BYTES // 1_000_000} MB", "split it")
    text = charset.decode(body, None)[0].lstrip("\ufeff \t\r\n")
    if not text or "\0" in text:
        raise InvalidInput("this is no list of sources", HELPS)
    if text[:14].lower().startswith(("<!doctype html", "<html")):
        raise InvalidInput("this is a web page", HELPS)
    if text[0] == "<":
        return _read("opml", _opml_rows(text))
    if text[0] in "{[":
        return _read("json", _json_rows(text))
    return _read("csv", _csv_rows(text))


Row = tuple[str, Mapping[str, Any]]
"""A place and what stands there, by lower-case names."""


def _read(format: str, rows: Iterable[Row]) -> SourceList:
    entries: dict[tuple[str, str], Listed] = {}
    bad: list[BadRow] = []
    for count, (place, row) in enumerate(rows):
        if count >= MOST_ROWS:
            raise InvalidInput(f"the list has more than {MOST_ROWS} rows", "split it")
        try:
            one = _listed(row, place)
        except ValueError as error:
            bad.append(BadRow(place, _target(row) or _name(row), str(error)))
            continue
        known = entries.get((one.kind, one.target))
        # The same feed may stand in several folders.
        entries[one.kind, one.target] = known.plus(categories=_united(known, one)) if known else one
    return SourceList(format, tuple(entries.values()), tuple(bad))


def _united(one: Listed, other: Listed) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one.categories, *other.categories)))


def _listed(row: Mapping[str, Any], place: str) -> Listed:
    """Raises ValueError with the reason."""
    target, name = _target(row), _name(row)
    kind = _text(row, "kind", "type").lower()
    is_of_pool = bool(name) and kind in ("", COMMUNITY_KIND) and not any(one in row for one in TARGET_NAMES)
    if is_of_pool:
        # A pool of communities names them, and tells no address.
        target = name if name.lower().startswith(("r/", "/r/", "http")) else f"r/{name}"
        kind, name = COMMUNITY_KIND, ""
    if not target:
        raise ValueError("no target: the address, or what its kind calls it, is missing")
    return Listed(
        target=target,
        kind=kind or UNTOLD_KIND,
        name=name or None,
        categories=_categories(_first(row, "categories", "category", "folder", "tags")),
        priority=_text(row, "priority", "tier").lower() or None,
        interval_minutes=_whole(_first(row, "interval_minutes", "interval")),
        quality_score=_number(_first(row, "quality_score", "quality")),
        settings=_settings(row.get("settings")),
        credential=_text(row, "credential") or None,
        is_paused=_text(row, "state").lower() == "paused" or _is_off(row.get("is_active")),
        is_of_pool=is_of_pool,
        place=place,
    )


TARGET_NAMES = ("target", "url", "xmlurl", "xml_url", "feed_url", "feed", "address")


def _target(row: Mapping[str, Any]) -> str:
    return _text(row, *TARGET_NAMES)


def _name(row: Mapping[str, Any]) -> str:
    return _text(row, "name", "title")


def _is_off(value: Any) -> bool:
    return value is not None and str(value).strip().lower() in ("false", "no", "0")


def _first(row: Mapping[str, Any], *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _text(row: Mapping[str, Any], *names: str) -> str:
    value = _first(row, *names)
    return " ".join(str(value).split()) if isinstance(value, str | int | float) else ""


def _whole(value: Any) -> int | None:
    number = _number(value)
    if number is not None and number != int(number):
        raise ValueError(f"{value!r} is not a whole number")
    return None if number is None else int(number)


def _number(value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{str(value)[:50]!r} is not a number")
    return number


def _categories(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        value = value.split(next((sign for sign in ";|" if sign in value), ","))
    elif not isinstance(value, list | tuple | Mapping):
        value = ()
    named = (" ".join(str(one).split())[:_LONGEST_CATEGORY] for one in value)
    return tuple(dict.fromkeys(one for one in named if one))


def _settings(value: Any) -> dict[str, Any]:
    if value in (None, ""):
        return {}
    try:
        settings = msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise ValueError("its settings are not a JSON object")
    return settings


def _json_rows(text: str) -> Iterator[Row]:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidInput(f"the list is not valid JSON: {error}", HELPS) from None
    alone = "target"
    if isinstance(document, dict):
        found = next((name for name in ("sources", "communities", "feeds") if name in document), None)
        alone = "name" if found == "communities" else "target"
        document = document.get(found)
    if not isinstance(document, list):
        raise InvalidInput("there is no list of sources in this JSON", HELPS)
    for number, one in enumerate(document, start=1):
        row = {alone: one} if isinstance(one, str) else one if isinstance(one, dict) else {}
        yield f"entry {number}", {str(name).lower(): value for name, value in row.items()}


_HARMLESS = re.compile(r"'+[=+\-@]")
_FORMULA = re.compile(r"'*[=+\-@]")


def _csv_rows(text: str) -> Iterator[Row]:
    first = text.splitlines()[0]
    delimiter = max(",;\t", key=first.count)
    names: list[str] | None = None
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    try:
        for cells in lines:
            if not any(cell.strip() for cell in cells) or cells[0].startswith("#"):
                continue
            if names is None:
                names = _header(cells)
                if names:
                    continue
                # Without a header it is what people jot down: an address a line, perhaps with a name.
                names = ["target", "name"]
            told = (cell[1:] if _HARMLESS.match(cell) else cell for cell in cells)
            yield f"line {lines.line_num}", dict(zip(names, told, strict=False))
    except csv.Error as error:
        raise InvalidInput(f"the list cannot be read as CSV, line {lines.line_num}: {error}", HELPS) from None


def _header(cells: Sequence[str]) -> list[str]:
    """The names of the columns; none: the first line is a row already."""
    names = [re.sub(r"[\s-]+", "_", cell.strip().lower()) for cell in cells]
    return names if {*TARGET_NAMES, "name"} & {*names} else []


def _opml_rows(text: str) -> Iterable[Row]:
    outlines = _Outlines()
    try:
        _parse(text, outlines)
    except expat.ExpatError:
        # Addresses with a bare & are the usual reason; whoever wrote them meant &amp;.
        outlines = _Outlines()
        try:
            _parse(_NOT_XML.sub("", _BARE_AMPERSAND.sub("&amp;", text)), outlines)
        except expat.ExpatError as error:
            raise InvalidInput(f"the list is not well-formed OPML: {error}", HELPS) from None
    return outlines.rows


_BARE_AMPERSAND = re.compile(r"&(?!#\d{1,7};|#x[0-9a-fA-F]{1,6};|(?:amp|lt|gt|quot|apos);)")
_NOT_XML = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def _parse(text: str, outlines: _Outlines) -> None:
    # Whatever encoding the file declares, it is decoded already.
    parser = expat.ParserCreate(encoding="utf-8")
    parser.StartDoctypeDeclHandler = outlines.doctype
    parser.StartElementHandler = outlines.start
    parser.EndElementHandler = outlines.end
    parser.Parse(text.encode("utf-8", "surrogatepass"), True)


class _Outlines:
    """Collects the feeds of an OPML document; the folders above a feed are its categories."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._above: list[str | None] = []

    def doctype(self, *_: object) -> None:
        # The way to entities that grow without end, and to files of this machine.
        raise InvalidInput("the list declares a document type (DOCTYPE)", "take that declaration out of the file")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self._above and name.lower() != "opml":
            raise InvalidInput(f"this is XML, but no OPML: <{name[:50]}>", HELPS)
        if len(self._above) >= _DEEPEST:
            raise InvalidInput(f"the list is nested more than {_DEEPEST} deep", HELPS)
        told = {key.lower(): value.strip() for key, value in attributes.items()}
        is_feed = name.lower() == "outline" and bool(told.get("xmlurl") or told.get("type", "").lower() == "rss")
        label = told.get("text") or told.get("title") or None
        if is_feed:
            folders = [one for one in self._above if one]
            more = re.split(r"[,/]", told.get("category", ""))
            row = {"target": told.get("xmlurl"), "name": label, "categories": [*folders, *more]}
            self.rows.append((f"outline {len(self.rows) + 1}", row))
        self._above.append(label if name.lower() == "outline" and not is_feed else None)

    def end(self, _name: str) -> None:
        self._above.pop()


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────


def write(entries: Sequence[Listed], format: str) -> tuple[str, int]:
    """The file's text, and how many of the sources it cannot hold: OPML knows feeds only, a pool communities."""
    if format not in FORMATS:
        raise InvalidInput(f"unknown format {format!r}", f"one of {', '.join(FORMATS)}", field="format")
    kinds = {"opml": FEED_KINDS, "communities": (COMMUNITY_KIND,)}.get(format)
    held = [one for one in entries if kinds is None or one.kind in kinds]
    writers: dict[str, Callable[[Sequence[Listed]], str]] = {
        "opml": _opml,
        "csv": _csv,
        "json": _json,
        "communities": _pool,
    }
    return writers[format](held), len(entries) - len(held)


COLUMNS = (
    *("kind", "target", "name", "categories", "priority", "interval_minutes", "quality_score", "settings"),
    *("credential", "state"),
)


def _told(one: Listed) -> dict[str, Any]:
    """All of a source that a list can say, by column; None: nothing to say."""
    return {
        "kind": one.kind,
        "target": one.target,
        "name": one.name,
        "categories": list(one.categories) or None,
        "priority": one.priority,
        "interval_minutes": one.interval_minutes,
        "quality_score": one.quality_score,
        "settings": one.settings or None,
        "credential": one.credential,
        "state": "paused" if one.is_paused else None,
    }


def _json(entries: Sequence[Listed]) -> str:
    rows = [{name: value for name, value in _told(one).items() if value is not None} for one in entries]
    return msgspec.json.format(msgspec.json.encode({"sources": rows}), indent=2).decode() + "\n"


def _pool(entries: Sequence[Listed]) -> str:
    rows = [
        {
            # As the community writes itself, if that is the name it has here.
            "name": one.name if (one.name or "").lower() == one.target.lower() else one.target,
            "tier": one.priority or UNTOLD_PRIORITY,
            "categories": list(one.categories),
            "quality_score": one.quality_score,
            "is_active": not one.is_paused,
        }
        for one in entries
    ]
    return msgspec.json.format(msgspec.json.encode({"communities": rows}), indent=2).decode() + "\n"


def _csv(entries: Sequence[Listed]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in _told(one).values()] for one in entries)
    return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, list):
        # Whoever reads it back splits at the semicolon; a category's own one cannot stay.
        value = ";".join(one.replace(";", ",") for one in value) + (";" if len(value) == 1 else "")
    elif isinstance(value, dict):
        value = msgspec.json.encode(value).decode()
    text = "" if value is None else str(value)
    # A name that begins so is a formula to a spreadsheet, and names come from strangers; reading takes the ' away.
    return f"'{text}" if _FORMULA.match(text) else text


def _opml(entries: Sequence[Listed]) -> str:
    folders: dict[str, list[Listed]] = {}
    for one in entries:
        for category in one.categories:
            folders.setdefault(category, []).append(one)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<opml version="2.0">',
        "  <head>",
        "    <title>Sources of catchment</title>",
        "  </head>",
        "  <body>",
        *(_outline(one, "    ") for one in entries if not one.categories),
    ]
    for folder, inside in sorted(folders.items()):
        lines.append(f"    <outline text={_attribute(folder)}>")
        lines += [_outline(one, "      ") for one in inside]
        lines.append("    </outline>")
    return "\n".join([*lines, "  </body>", "</opml>", ""])


def _outline(one: Listed, indent: str) -> str:
    name = _attribute(one.name or one.target)
    return f'{indent}<outline type="rss" text={name} title={name} xmlUrl={_attribute(one.target)}/>'


def _attribute(text: str) -> str:
    return quoteattr(_NOT_XML.sub("", text))
