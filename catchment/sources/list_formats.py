"""Parses and writes lists of sources: OPML, CSV and JSON. Pure: text in, records out, and back.

The content decides which of the three a file is, never its name. A row that cannot be used is reported with its
position and the reason; the others are processed. Files come from strangers: OPML with a document type, and so with
entities of its own, is refused, and so is a file that is too large or too deep.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, TypeAlias
from xml.parsers import expat

import msgspec

from catchment import work_limits
from catchment.errors import InvalidInput, TooComplex
from catchment.lazy import pattern
from catchment.logs import redact
from catchment.model import Record, SettingValues
from catchment.text import charset

# A parser would read them as spaces.
_LINE_ENDS = str.maketrans({"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
FORMATS = ("opml", "csv", "json", "communities")
MOST_BYTES = 20_000_000
MOST_ROWS = 100_000
FEED_KINDS = ("rss", "digest_feed")
"""The kinds OPML can hold."""
DEFAULT_KIND = "rss"
"""The kind of a row that names none: lists of feeds are what most programs exchange."""
UNTOLD_PRIORITY = "medium"
COMMUNITY_KIND = "reddit"
"""The kind of a pool of communities."""
MOST_AMPERSANDS = 300_000
"""In OPML that is not well-formed."""
LONGEST_ATTRIBUTE = 100_000
_DEEPEST = 100
_LONGEST_CATEGORY = 100
HELPS = (
    "use OPML, CSV with a column `target` (or `url`), JSON: a list of objects with `kind` and `target`, or a pool of "
    "communities: a list of objects with `name`, `tier`, `categories` and `quality_score`"
)


class ListedSource(Record, frozen=True):
    """One source as a list names it."""

    target: str
    kind: str = DEFAULT_KIND
    name: str | None = None
    categories: tuple[str, ...] = ()
    priority: str | None = None
    """None: not given."""
    interval_minutes: int | None = None
    quality_score: float | None = None
    settings: SettingValues = {}
    credential: str | None = None
    """The credential's name: no list holds a secret."""
    is_paused: bool = False
    is_of_pool: bool = False
    """From a pool of communities: if the source exists already, the pool's values are taken over."""
    place: str = ""
    """Its position in the file, for people."""


class BadRow(Record, frozen=True):
    """A row that could not be used, without any secret: it is shown wherever a list is imported."""

    place: str
    target: str
    reason: str


class SourceList(Record, frozen=True):
    """The content of a file."""

    format: str
    entries: tuple[ListedSource, ...]
    bad_rows: tuple[BadRow, ...] = ()


def read(body: bytes) -> SourceList:
    """Returns the sources that a file lists. Raises InvalidInput if it is not a list at all."""
    if len(body) > MOST_BYTES:
        raise InvalidInput("the list is larger than {size} MB", "split it", size=MOST_BYTES // 1_000_000)
    try:
        work_limits.check_json_size(body)
    except TooComplex as error:
        raise InvalidInput(
            "the list has {count:,} values; at most {most:,} are read",
            "split it",
            count=error.what.params["count"],
            most=error.what.params["most"],
        ) from None
    text = charset.decode(body, None)[0].lstrip("\ufeff \t\r\n")
    if not text or "\0" in text:
        raise InvalidInput("this is not a list of sources", HELPS)
    if text[:14].lower().startswith(("<!doctype html", "<html")):
        raise InvalidInput("this is a web page", HELPS)
    if text[0] == "<":
        return _read("opml", _opml_rows(text))
    if text[0] in "{[":
        return _read("json", _json_rows(text))
    return _read("csv", _csv_rows(text))


Row: TypeAlias = Mapping[str, Any]
"""The fields of a listed source, by lower-case names."""
PlacedRow: TypeAlias = tuple[str, Row]
"""Its position in the list, and the row."""


def _read(format: str, rows: Iterable[PlacedRow]) -> SourceList:
    entries: dict[tuple[str, str], ListedSource] = {}
    bad: list[BadRow] = []
    for count, (position, row) in enumerate(rows):
        if count >= MOST_ROWS:
            raise InvalidInput("the list has more than {most_rows} rows", "split it", most_rows=MOST_ROWS)
        try:
            listed = _listed(row, position)
        except ValueError as error:
            bad.append(BadRow(position, redact(_target(row) or _name(row)), redact(str(error))))
            continue
        earlier = entries.get((listed.kind, listed.target))
        # The same feed may be in several folders.
        entries[listed.kind, listed.target] = (
            earlier.replace(categories=_united(earlier, listed)) if earlier else listed
        )
    return SourceList(format, tuple(entries.values()), tuple(bad))


def _united(listed: ListedSource, other: ListedSource) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*listed.categories, *other.categories)))


def _listed(row: Row, place: str) -> ListedSource:
    """Returns the source of a row; raises ValueError with the reason."""
    target, name = _target(row), _name(row)
    kind = _text(row, "kind", "type").lower()
    is_of_pool = bool(name) and kind in ("", COMMUNITY_KIND) and not any(text in row for text in TARGET_NAMES)
    if is_of_pool:
        # A pool of communities gives names and no URL.
        target = name if name.lower().startswith(("r/", "/r/", "http")) else f"r/{name}"
        kind, name = COMMUNITY_KIND, ""
    if not target:
        raise ValueError("no target: the address, or what its kind calls it, is missing")
    return ListedSource(
        target=target,
        kind=kind or DEFAULT_KIND,
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


def _target(row: Row) -> str:
    return _text(row, *TARGET_NAMES)


def _name(row: Row) -> str:
    return _text(row, "name", "title")


def _is_off(value: Any) -> bool:
    return value is not None and str(value).strip().lower() in ("false", "no", "0")


def _first(row: Row, *names: str) -> Any:
    return next((row[name] for name in names if row.get(name) not in (None, "")), None)


def _text(row: Row, *names: str) -> str:
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
    named = (" ".join(str(category).split())[:_LONGEST_CATEGORY] for category in value)
    return tuple(dict.fromkeys(name for name in named if name))


def _settings(value: Any) -> SettingValues:
    if value in (None, ""):
        return {}
    try:
        settings = msgspec.json.decode(value) if isinstance(value, str) else value
    except (msgspec.DecodeError, RecursionError):
        settings = None
    if not isinstance(settings, dict):
        raise ValueError("its settings are not a JSON object")
    return settings


def _json_rows(text: str) -> Iterator[PlacedRow]:
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError) as error:
        at = re.search(r"byte (\d+)", str(error))
        what = "the list is not valid JSON (from byte {at} on)" if at else "the list is not valid JSON"
        raise InvalidInput(what, HELPS, at=at[1] if at else None) from None
    alone = "target"
    if isinstance(document, dict):
        list_name = next((name for name in ("sources", "communities", "feeds") if name in document), None)
        alone = "name" if list_name == "communities" else "target"
        document = document.get(list_name)
    if not isinstance(document, list):
        raise InvalidInput("there is no list of sources in this JSON", HELPS)
    for number, entry in enumerate(document, start=1):
        row = {alone: entry} if isinstance(entry, str) else entry if isinstance(entry, dict) else {}
        yield f"entry {number}", {str(name).lower(): value for name, value in row.items()}


# Full-width signs, too: some spreadsheets fold them into the ordinary ones first.
_HARMLESS = pattern(r"'+[=+\-@＝＋－＠]")
_FORMULA = pattern(r"'*[=+\-@＝＋－＠]")


def _csv_rows(text: str) -> Iterator[PlacedRow]:
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
                # Without a header it is a list as people write it: a URL per line, perhaps with a name.
                names = ["target", "name"]
            values = (cell[1:] if _HARMLESS.match(cell) else cell for cell in cells)
            yield f"line {lines.line_num}", dict(zip(names, values, strict=False))
    except csv.Error:
        raise InvalidInput("the list is not valid CSV from line {line} on", HELPS, line=lines.line_num) from None


def _header(cells: Sequence[str]) -> list[str]:
    """Returns the column names; empty if the first line is a row already."""
    names = [re.sub(r"[\s-]+", "_", cell.strip().lower()) for cell in cells]
    return names if {*TARGET_NAMES, "name"} & {*names} else []


def _opml_rows(text: str) -> Iterable[PlacedRow]:
    outlines = _Outlines()
    try:
        _parse(text, outlines)
    except expat.ExpatError:
        # URLs with a bare & are the usual reason; &amp; was meant.
        outlines = _Outlines()
        if (ampersands := text.count("&")) > MOST_AMPERSANDS:
            raise InvalidInput(
                "the list is not well-formed OPML: too many unescaped & ({ampersands:,})",
                "export it again, or write &amp; for each &",
                ampersands=ampersands,
            ) from None
        try:
            _parse(_NOT_XML.sub("", _BARE_AMPERSAND.sub("&amp;", text)), outlines)
        except expat.ExpatError as error:
            raise InvalidInput(
                "the list is not well-formed OPML, from line {line} on", HELPS, line=error.lineno
            ) from None
    return outlines.rows


_BARE_AMPERSAND = pattern(r"&(?!#\d{1,7};|#x[0-9a-fA-F]{1,6};|(?:amp|lt|gt|quot|apos);)")
_NOT_XML = pattern("[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


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
        self.rows: list[PlacedRow] = []
        self._above: list[str | None] = []

    def doctype(self, *_: object) -> None:
        # Allows entities that grow without end, and access to files of this machine.
        raise InvalidInput("the list declares a document type (DOCTYPE)", "remove that declaration from the file")

    def start(self, name: str, attributes: Mapping[str, str]) -> None:
        if not self._above and name.lower() != "opml":
            raise InvalidInput("this is XML, but not OPML: <{name}>", HELPS, name=name[:50])
        if len(self._above) >= _DEEPEST:
            raise InvalidInput("the list is nested more than {deepest} deep", HELPS, deepest=_DEEPEST)
        if (longest := max(map(len, attributes.values()), default=0)) > LONGEST_ATTRIBUTE:
            raise InvalidInput(
                "an attribute of the list has {longest:,} characters; the limit is {most:,}",
                "export the list again",
                longest=longest,
                most=LONGEST_ATTRIBUTE,
            )
        fields = {key.lower(): value.strip() for key, value in attributes.items()}
        is_feed = name.lower() == "outline" and bool(fields.get("xmlurl") or fields.get("type", "").lower() == "rss")
        label = fields.get("text") or fields.get("title") or None
        if is_feed:
            folders = [text for text in self._above if text]
            more = re.split(r"[,/]", fields.get("category", ""))
            row = {"target": fields.get("xmlurl"), "name": label, "categories": [*folders, *more]}
            self.rows.append((f"outline {len(self.rows) + 1}", row))
        self._above.append(label if name.lower() == "outline" and not is_feed else None)

    def end(self, _name: str) -> None:
        self._above.pop()


def write(entries: Sequence[ListedSource], format: str) -> tuple[str, int]:
    """Returns the file's text, and how many sources it cannot hold: OPML holds feeds only, a pool communities."""
    if format not in FORMATS:
        what = "unknown format {format!r}" if format else "the format is missing"
        raise InvalidInput(what, "one of {formats}", field="format", format=format, formats=", ".join(FORMATS))
    kinds = {"opml": FEED_KINDS, "communities": (COMMUNITY_KIND,)}.get(format)
    written = [entry for entry in entries if kinds is None or entry.kind in kinds]
    writers: dict[str, Callable[[Sequence[ListedSource]], str]] = {
        "opml": _opml,
        "csv": _csv,
        "json": _json,
        "communities": _pool,
    }
    return writers[format](written), len(entries) - len(written)


COLUMNS = (
    *("kind", "target", "name", "categories", "priority", "interval_minutes", "quality_score", "settings"),
    *("credential", "state"),
)


def _told(listed: ListedSource) -> dict[str, Any]:
    """Returns all fields of a source that a list can hold, by column; None: not set."""
    return {
        "kind": listed.kind,
        "target": listed.target,
        "name": listed.name,
        "categories": list(listed.categories) or None,
        "priority": listed.priority,
        "interval_minutes": listed.interval_minutes,
        "quality_score": listed.quality_score,
        "settings": listed.settings or None,
        "credential": listed.credential,
        "state": "paused" if listed.is_paused else None,
    }


def _json(entries: Sequence[ListedSource]) -> str:
    rows = [{name: value for name, value in _told(entry).items() if value is not None} for entry in entries]
    return msgspec.json.format(msgspec.json.encode({"sources": rows}), indent=2).decode() + "\n"


def _pool(entries: Sequence[ListedSource]) -> str:
    rows = [
        {
            # In the community's own spelling, if that is its name here.
            "name": entry.name if (entry.name or "").lower() == entry.target.lower() else entry.target,
            "tier": entry.priority or UNTOLD_PRIORITY,
            "categories": list(entry.categories),
            "quality_score": entry.quality_score,
            "is_active": not entry.is_paused,
        }
        for entry in entries
    ]
    return msgspec.json.format(msgspec.json.encode({"communities": rows}), indent=2).decode() + "\n"


def _csv(entries: Sequence[ListedSource]) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(COLUMNS)
    writer.writerows([_cell(value) for value in _told(entry).values()] for entry in entries)
    return text.getvalue()


def _cell(value: Any) -> str:
    if isinstance(value, list):
        # Importers split at the semicolon; a category's own one cannot stay.
        value = ";".join(category.replace(";", ",") for category in value) + (";" if len(value) == 1 else "")
    elif isinstance(value, dict):
        value = msgspec.json.encode(value).decode()
    text = "" if value is None else str(value)
    # A spreadsheet takes such a name for a formula, and names come from strangers; parsing removes the '.
    return f"'{text}" if _FORMULA.match(text) else text


def _opml(entries: Sequence[ListedSource]) -> str:
    folders: dict[str, list[ListedSource]] = {}
    for entry in entries:
        for category in entry.categories:
            folders.setdefault(category, []).append(entry)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<opml version="2.0">',
        "  <head>",
        "    <title>Sources of catchment</title>",
        "  </head>",
        "  <body>",
        *(_outline(listed, "    ") for listed in entries if not listed.categories),
    ]
    for folder, inside in sorted(folders.items()):
        lines.append(f"    <outline text={_attribute(folder)}>")
        lines += [_outline(listed, "      ") for listed in inside]
        lines.append("    </outline>")
    return "\n".join([*lines, "  </body>", "</opml>", ""])


def _outline(listed: ListedSource, indent: str) -> str:
    name = _attribute(listed.name or listed.target)
    return f'{indent}<outline type="rss" text={name} title={name} xmlUrl={_attribute(listed.target)}/>'


def _attribute(text: str) -> str:
    # As xml.sax.saxutils.quoteattr, whose import also loads the HTTP client and TLS.
    return f'"{escape(_NOT_XML.sub("", text), quote=True)}"'.translate(_LINE_ENDS)
