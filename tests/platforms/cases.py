"""Cases of platforms: an answer in a file, beside it what the platform makes of it.

`tests/platforms/NAME/` holds the cases of the platform NAME: `case.json` (or .xml, .html …), the body as it came, and
`case.expected.json`, an `Expectation`. `pytest tests/platforms/test_cases.py --write-expected` writes the outcomes
anew, and keeps everything else in the files.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from catchment.collect.source_settings import checked_settings
from catchment.errors import CatchmentError
from catchment.model import (
    Answer,
    Platform,
    Progress,
    Reading,
    Request,
    Source,
    WalkPlan,
)
from catchment.platforms import installed

FOLDER = Path(__file__).parent
ENDING = ".expected.json"
WRITE = "pytest tests/platforms/test_cases.py --write-expected writes it"
ANSWERED_AT = datetime(2026, 3, 2, tzinfo=UTC)
FIELDS = {field.name for field in msgspec.structs.fields(Request)}


class Expectation(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What `case.expected.json` says: where the body comes from, what was requested, and the outcome."""

    origin: str
    """Where the body comes from: recorded (when, where), or written by hand, and what it shows."""
    kind: str | None = None
    """The kind of the source; None: the platform's first."""
    target: str | None = None
    """As a user would type it; None: the kind's example."""
    settings: dict[str, Any] = {}
    credential: str | None = None
    listing: str | None = None
    """The listing that is walked; None: the kind's first."""
    has_key: bool = False
    request: dict[str, Any] = {}
    """Fields of the request that differ from the source's first request: url, step, state …"""
    status: int = 200
    headers: dict[str, str] = {}
    url: str | None = None
    """The final URL of the answer; None: that of the request."""
    reading: dict[str, Any] | None = None
    """The whole reading: every field that differs from its default."""
    refusal: dict[str, Any] | None = None
    """What `refusal` returned, if the answer counts as a failure."""
    error: dict[str, Any] | None = None
    """The error that `read` raised."""


class Case:
    """One answer, and the expectation beside it."""

    def __init__(self, path: Path, platform: Platform | None = None) -> None:
        self.path = path
        self.platform: Platform = platform or installed().by_name[path.parent.name]

    def __str__(self) -> str:
        return f"{self.path.parent.name}/{self.path.name}"

    @property
    def beside(self) -> Path:
        return self.path.with_name(stem(self.path) + ENDING)

    @property
    def body(self) -> bytes:
        return self.path.read_bytes()

    def expectation(self) -> Expectation:
        """Returns the file beside it. Fails if there is none, or if it has fields that nobody knows."""
        assert self.beside.is_file(), f"{self} has no {self.beside.name}: {WRITE}"
        try:
            expectation = msgspec.json.decode(self.beside.read_bytes(), type=Expectation)
        except msgspec.MsgspecError as error:
            raise AssertionError(f"{self.beside.name}: {error}") from None
        unknown = expectation.request.keys() - FIELDS
        assert not unknown, f"{self.beside.name}: a request has no {', '.join(sorted(unknown))}"
        return expectation

    def request(self, expectation: Expectation) -> Request:
        """Returns the first request of the case's source, with the fields that the case changes."""
        kinds = {kind.name: kind for kind in self.platform.KINDS}
        kind = kinds[expectation.kind] if expectation.kind else self.platform.KINDS[0]
        target = self.platform.understand(expectation.target or kind.example, kind.name)
        settings = {**target.settings, **checked_settings(kind, expectation.settings)}
        source = Source(
            1,
            "key",
            self.platform.NAME,
            kind.name,
            target.address,
            target.name or target.address,
            ANSWERED_AT,
            settings=settings,
            credential=expectation.credential,
        )
        listing = expectation.listing or kind.listings[0].name
        plan = WalkPlan(listing, kind.base_limit, is_first=True, has_key=expectation.has_key)
        requests = self.platform.first(source, Progress(), plan)
        assert len(requests) == 1, f"{self}: `first` returned {len(requests)} requests; a case needs a walk with one"
        return msgspec.convert({**msgspec.to_builtins(requests[0]), **expectation.request}, Request)

    def outcome(self, expectation: Expectation) -> dict[str, Any]:
        """Returns what the platform makes of the answer, as data: a reading, a refusal or an error."""
        request = self.request(expectation)
        answer = Answer(expectation.status, expectation.headers, self.body, expectation.url or request.url, ANSWERED_AT)
        refusal = self.platform.refusal(answer, request)
        if refusal is not None:
            return {"refusal": as_data(refusal)}
        accepts = getattr(self.platform, "accepts", lambda answer, request: False)
        assert answer.status < 300 or accepts(answer, request), (
            f"{self}: neither `refusal` nor `accepts` handles status {answer.status}, so it has its usual meaning and "
            "needs no case"
        )
        try:
            return {"reading": as_data(self.platform.read(answer, request))}
        except CatchmentError as error:
            return {"error": error_data(error)}

    def check(self) -> None:
        """Fails unless the platform makes of the answer what the file says."""
        expectation = self.expectation()
        assert expectation.origin.strip(), (
            f"{self.beside.name}: `origin` is empty: write there where the body comes from, and check that the outcome "
            "is what you want"
        )
        expected = {name: getattr(expectation, name) for name in ("reading", "refusal", "error")}
        expected = {name: value for name, value in expected.items() if value is not None}
        outcome = self.outcome(expectation)
        declared = {name for kind in self.platform.KINDS for name in kind.item_kinds}
        kinds = {item.get("kind", "entry") for item in outcome.get("reading", {}).get("items", [])}
        undeclared = ", ".join(sorted(kinds - declared))
        assert not undeclared, f"{self}: an item has a kind that no `Kind` declares as one of its items: {undeclared}"
        assert outcome == expected, f"{self}: the outcome is not that of {self.beside.name}\n{diff(expected, outcome)}"

    def write(self) -> None:
        """Writes the outcome into the file beside it; the rest of the file stays."""
        expectation = self.expectation() if self.beside.is_file() else Expectation(origin="")
        outcome = {"reading": None, "refusal": None, "error": None} | self.outcome(expectation)
        data = msgspec.to_builtins(msgspec.structs.replace(expectation, **outcome))
        self.beside.write_text(json.dumps(data, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")


def diff(expected: Any, outcome: Any) -> str:
    """Returns the lines that differ: - as expected, + as the platform reads it."""
    before, after = (json.dumps(data, ensure_ascii=False, indent=2).splitlines() for data in (expected, outcome))
    return "\n".join(difflib.unified_diff(before, after, "expected", "read", lineterm=""))


def stem(path: Path) -> str:
    return path.name.partition(".")[0]


def as_data(value: Any) -> Any:
    """Returns a record as JSON data: the fields that differ from their defaults, records inside it likewise."""
    if isinstance(value, msgspec.Struct):
        shown = {field.name: getattr(value, field.name) for field in msgspec.structs.fields(value)}
        defaults = {field.name: _default(field) for field in msgspec.structs.fields(value)}
        return {name: as_data(inner) for name, inner in shown.items() if inner != defaults[name]}
    if isinstance(value, list | tuple):
        return [as_data(entry) for entry in value]
    return error_data(value) if isinstance(value, Exception) else msgspec.to_builtins(value)


def _default(field: msgspec.structs.FieldInfo) -> Any:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def error_data(error: Exception) -> dict[str, Any]:
    retry_at = getattr(error, "retry_at", None)
    data = {"type": type(error).__name__, "message": str(error)}
    return data | ({"retry_at": retry_at.isoformat()} if retry_at else {})


def folders(folder: Path = FOLDER) -> list[Path]:
    return sorted(path for path in folder.iterdir() if path.is_dir() and path.name != "__pycache__")


def cases(folder: Path = FOLDER) -> list[Case]:
    """Returns the cases of all platforms."""
    names = installed().by_name
    files = [path for inner in folders(folder) if inner.name in names for path in sorted(inner.iterdir())]
    return [Case(path) for path in files if not path.name.endswith(ENDING)]


def problems(folder: Path = FOLDER) -> Iterator[str]:
    """Yields what is wrong with the files themselves: folders of no platform, files that belong to nothing."""
    for inner in folders(folder):
        if inner.name not in installed().by_name:
            yield f"{inner.name}/: there is no platform of this name"
        expected = {path.name.removesuffix(ENDING) for path in inner.iterdir() if path.name.endswith(ENDING)}
        bodies = Counter(stem(path) for path in inner.iterdir() if not path.name.endswith(ENDING))
        yield from (f"{inner.name}/{name}{ENDING}: there is no case of this name" for name in expected - bodies.keys())
        yield from (f"{inner.name}/{name}: no {name}{ENDING} beside it" for name in bodies.keys() - expected)
        yield from (f"{inner.name}/{name}: {count} cases of one name" for name, count in bodies.items() if count > 1)


def bodies(platform: str) -> list[bytes]:
    """Returns the bodies of a platform's cases."""
    return [case.body for case in cases() if case.path.parent.name == platform]


def requests(platform: str) -> list[Request]:
    """Returns the requests of a platform's cases."""
    return [case.request(case.expectation()) for case in cases() if case.path.parent.name == platform]


def read(platform: str, name: str) -> Reading:
    """Returns the reading of one case, for tests that compare it with something else."""
    (case,) = (case for case in cases() if str(case) == f"{platform}/{name}")
    request = case.request(case.expectation())
    return case.platform.read(Answer(200, {}, case.body, request.url, ANSWERED_AT), request)
