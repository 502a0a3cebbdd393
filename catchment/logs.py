"""Logging, and the redaction that everything printed or stored passes through.

Two things identify a secret in a text: its value, where we know it (`know_secret`), and its context, where we do not (a
name that suggests a secret, an HTTP auth scheme, the user part of a URL). Ordinary words stay as they are.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, date, datetime
from functools import cached_property, lru_cache
from types import MappingProxyType
from typing import Any, TextIO
from urllib.parse import quote, quote_plus, unquote_plus

from catchment.lazy import lazy_imports, pattern
from catchment.messages import Message
from catchment.text.printable import escaped

with lazy_imports():
    # Takes long to import; only a terminal needs it.
    import structlog

HIDDEN = "***REDACTED***"

# ── what gives a secret away ───────────────────────────────────────────────────────────────────────────────────────

NAMES = r"""(?:
    # at the end of any name: access_token, clientSecret, PHPSESSID. What turns pages is a token in name only.
    (?<!next_)(?<!page_)(?<!pagination_)(?<!continuation_)token (?:_v?\d)?
    | secret | passw(?:or)?d | passphrase | (?:api|access|secret|private|master)[_-]?key
    | sess(?:ion)?_?id | passport_?cid | authorization | cookies? | cookie_value
    # only as a name, or a part of one: "classid" and "co-author" do not count
    | (?<![a-z0-9]) (?:(?:\w{1,20}_)?session | sid | ct0 | a1 | kdt | pwd | csrf | xsrf | signature)
)"""
QUERY_NAMES = frozenset({"key", "auth", "sig", "sign", "hmac", "code_verifier", "access_code"})
"""Names that suggest a secret in a URL, and mean too many other things elsewhere."""
QUERY_PARTS = frozenset(
    (
        *("pass", "passcode", "passkey", "pw", "jwt", "bearer", "auth", "authkey", "authcode", "credential"),
        *("credentials", "creds", "pswd", "torrentpass", "userpass", "rsspass", "rssauth"),
    )
)
"""Parts of a name, between separators, that suggest a secret: auth_code, user_credentials."""
QUERY_KEYS = pattern(
    r"(?:feed|rss|app|auth|subscription|licen[cs]e|user|client|account|member|reader|site|service|shared|security|tracker)"
    r"s?[_.-]?key",
    re.IGNORECASE,
)
"""Keys of things that one subscribes to, signs in with or pays for."""
NUMBERED = pattern(r"(?:\[\w*\]|\d{1,2})\Z")
OTHER_KEY = pattern(r".*key", re.IGNORECASE)
NO_SECRETS = frozenset(
    {
        *("id", "ids", "uuid", "guid", "v", "list", "channel_id", "playlist_id", "video_id"),
        *("user_id", "post_id", "q", "query", "search", "cursor", "after", "before", "page"),
        *("page_token", "next", "offset", "hash", "etag", "ref", "url", "uri", "link"),
        *("path", "file", "date", "since", "until", "lang", "format", "tag", "tags"),
        *("category", "fields", "filter", "sort", "order", "include", "expand", "continuation", "_next"),
        "_page",
    }
)
"""Names under which long random values are ordinary."""

SECRET_NAME = pattern(rf"{NAMES}\Z", re.VERBOSE | re.IGNORECASE)

PAIR = pattern(
    rf"""
    (?P<before> (?P<name>{NAMES}) \\{{0,3}}["']? \s{{0,3}} (?P<sign>[=:]|%3D) (?!=) \s{{0,3}} b? )
    (?:
        # in quotes, perhaps escaped ones (JSON inside JSON); a text that was cut off may lack the second one
        (?P<quote> \\{{0,3}}["'] ) (?P<inside> (?: (?!(?P=quote)) (?:\\.|.) )* )
        | (?P<scheme> (?:Bearer|Basic|Token|Digest) \s{{1,3}} )? (?P<bare> [^\s&;"'<>\\]+ )
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
VALUE_END = pattern(r"[ \t]*(?:[&;,})\]\"'<\r\n]|\Z)")
COOKIE_LINE = pattern(r"((?:^|[^\w])(?:set-)?cookie\s{0,3}:\s{0,3})([^\s=;\"']+=[^\r\n\"']*)", re.IGNORECASE)
COOKIE_VALUE = pattern(r"(=)([^;]*[^;\s])")
SCHEME = pattern(r"\b(Bearer|Basic)(\s{1,3}|%20)([\w.~+/=-]{6,})", re.IGNORECASE)
SCHEME_WORDS = pattern(r"tokens?|auth\w*|schemes?|credentials?|headers?", re.IGNORECASE)
# Except in the placeholder form in which our own messages show a database URL.
USER_INFO = pattern(r"(?<=://)(?!USER:PASSWORD@HOST/)[^\s/?#\"<>\x80-\U0010ffff]+@")
QUERY_VALUE = pattern(r"([?&]([\w.\[\]%-]{1,60})=)([^\s&;#\"'<>]+)")
WEB_TOKEN = pattern(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")

TRIGGERS = (
    *(
        "token",
        "secret",
        "pass",
        "pw=",
        "jwt",
        "credential",
        "key",
        "sess",
        "auth",
        "cookie",
        "sid",
        "ct0",
        "a1",
        "kdt",
    ),
    *(
        "pwd",
        "csrf",
        "xsrf",
        "sig",
        "bearer",
        "basic",
        "@",
        "eyj",
        "hmac",
        "code_verifier",
        "creds",
        "pswd",
        "access_code",
    ),
)
"""No pattern above matches a text that contains none of these: for most texts this check is enough."""

AMBIGUOUS = frozenset({"session", "sid", "a1"})
"""Names that often mean something else: their value is not redacted if it is short."""
HARMLESS = frozenset(
    {HIDDEN.lower(), "null", "none", "true", "false", "undefined", "set", "missing", "expired", "invalid"}
)


# ── redaction ──────────────────────────────────────────────────────────────────────────────────────────────────────

SHORTEST = 6
"""Shorter secrets cannot be distinguished from ordinary words."""
_known: tuple[str, ...] = ()


def know_secret(value: str) -> None:
    """Redact this value from now on wherever it occurs, plain or encoded. Short values are ignored: they would hide
    ordinary words."""
    global _known
    fit = {spelling for spelling in spellings(value) if len(value) >= SHORTEST and spelling not in HIDDEN}
    # Longest first, so that a secret inside another one does not leave the rest of it visible.
    _known = tuple(sorted({*_known, *fit}, key=len, reverse=True))


def spellings(value: str) -> set[str]:
    """The spellings in which a secret may occur in a text: plain, URL-encoded, in JSON."""
    return {value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1]}


def redact(text: str) -> str:
    """The text without secrets. Idempotent."""
    if isinstance(text, Message):
        return _redacted(text)
    for value in _known:
        if value in text:
            text = text.replace(value, HIDDEN)
    if not may_hold_traces(text):
        return text
    for _, shape, hide in _SHAPES:
        text = shape.sub(hide, text)
    return text


def _redacted(message: Message) -> Message:
    """The message without secrets in its text or its parameters."""
    return Message(redact(str(message.code)), {name: redact_value(value) for name, value in message.params.items()})


def traces(text: str) -> list[str]:
    """Descriptions of what would be redacted in a text because of its form; empty if it may be kept as it is."""
    if not may_hold_traces(text):
        return []
    return [what for what, shape, hide in _SHAPES if shape.sub(hide, text) != text]


def may_hold_traces(text: str) -> bool:
    """Whether a text needs a closer check: cheap, and false for most texts."""
    lower = text.lower()
    for trigger in TRIGGERS:  # noqa: SIM110 - a generator would take three times as long, for every line of the log
        if trigger in lower:
            return True
    return False


@lru_cache(maxsize=1024)
def is_secret_name(name: str) -> bool:
    """Whether a value under this name has to be hidden: password, access_token, X-API-Key …"""
    return SECRET_NAME.search(name) is not None


def is_secret_parameter(name: str, value: str) -> bool:
    """Whether a URL parameter has to be hidden; also considers its value."""
    if name.lower() in AMBIGUOUS and value.isdigit():
        # The number of a section, for example. Without it, two URLs would become one.
        return False
    return _promises_secret(name, value) and not _is_harmless(name, value)


def _promises_secret(name: str, value: str) -> bool:
    lower = name.lower()
    if lower in QUERY_NAMES or is_secret_name(name) or QUERY_KEYS.fullmatch(name):
        return True
    # token2, password[]: one of several.
    unnumbered = NUMBERED.sub("", lower)
    if unnumbered not in AMBIGUOUS and is_secret_name(unnumbered):
        return True
    if QUERY_PARTS & {*re.split(r"[^a-z0-9]+", unnumbered)}:
        return True
    # sortkey=title is not a secret, whateverkey=9f3a77c1 is.
    return OTHER_KEY.fullmatch(name) is not None and len(value) >= _KEY_LENGTH and _is_mixed(value)


_KEY_LENGTH = 8
_LONG, _LONG_HEX = 20, 32


def looks_secret(name: str, value: str) -> bool:
    """Whether a URL parameter may be a secret although its name does not say so: long and random. Not certain enough to
    remove it from the URL without asking: many sites use such ids."""
    if name.lower() in NO_SECRETS or is_secret_parameter(name, value):
        return False
    is_hex = re.fullmatch(r"[0-9a-fA-F]+", value) is not None
    if is_hex or not re.fullmatch(r"[\w.~+/=-]+", value):
        return is_hex and len(value) >= _LONG_HEX and _is_mixed(value)
    return len(value) >= _LONG and _is_mixed(value) and len({*value}) >= 10 and not _has_words(value)


def _is_mixed(value: str) -> bool:
    """Letters and digits mixed, as in no readable word."""
    return any(sign.isdigit() for sign in value) and any(sign.isalpha() for sign in value)


def _has_words(value: str) -> bool:
    """Whether most of it is words or dates joined by separators: 2026-01-31-a-title."""
    parts = [part for part in re.split(r"[^A-Za-z0-9]+", value) if part]
    plain = sum(len(part) for part in parts if part.isdigit() or not looks_random(part))
    return len(parts) > 1 and plain * 2 > len(value)


def _hide_cookies(match: re.Match[str]) -> str:
    return match[1] + COOKIE_VALUE.sub(rf"\1{HIDDEN}", match[2])


def _hide_parameter(match: re.Match[str]) -> str:
    return f"{match[1]}{HIDDEN}" if is_secret_parameter(unquote_plus(match[2]), match[3]) else match[0]


def _hide_pair(match: re.Match[str]) -> str:
    before, quote, scheme = match["before"], match["quote"] or "", match["scheme"] or ""
    value = match["inside"] if quote else match["bare"].rstrip(",.!?)]}")
    if _is_harmless(match["name"], value) or not (quote or scheme or match["sign"] != ":" or _is_told(match, value)):
        return match[0]
    after = "" if quote else match["bare"][len(value) :]
    return f"{before}{quote}{scheme}{HIDDEN}{after}"


def _is_harmless(name: str, value: str) -> bool:
    if name.lower() in AMBIGUOUS and len(value) < 6:
        return True
    return not value or value.lower() in HARMLESS or value.endswith(f"={HIDDEN}")


def _is_told(match: re.Match[str], value: str) -> bool:
    """Whether what follows a colon is a value (`password: sesame`) rather than prose (`the secret: never give up`)."""
    return VALUE_END.match(match.string, match.end()) is not None or looks_random(value)


def _hide_scheme(match: re.Match[str]) -> str:
    scheme, space, value = match.groups()
    is_header = scheme == "Bearer" and not SCHEME_WORDS.fullmatch(value)
    return f"{scheme}{space}{HIDDEN}" if is_header or looks_random(value) else match[0]


def looks_random(value: str) -> bool:
    """Unlike a word: has digits, symbols or inner capitals, or is very long."""
    return len(value) > 24 or not value.isalpha() or not (value.islower() or value.istitle() or value.isupper())


_SHAPES: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str] | str], ...] = (
    ("a cookie", COOKIE_LINE, _hide_cookies),
    ("a value whose name promises a secret", PAIR, _hide_pair),
    ("a login of HTTP", SCHEME, _hide_scheme),
    ("the user of an address", USER_INFO, f"{HIDDEN}@"),
    ("a key in an address", QUERY_VALUE, _hide_parameter),
    ("a web token", WEB_TOKEN, HIDDEN),
)
"""Applied in this order; each with a description."""


def redact_value(value: Any, depth: int = 0) -> Any:
    """Redact any value that an event may contain. What is neither text nor number becomes redacted text."""
    if value is None or isinstance(value, bool | int | float | date):
        return value
    if isinstance(value, str):
        return redact(value)
    if depth < 6 and isinstance(value, Mapping):
        return {redact(str(name)): _redact_named(str(name), inner, depth) for name, inner in value.items()}
    if depth < 6 and isinstance(value, list | tuple | set | frozenset):
        return [redact_value(inner, depth + 1) for inner in value]
    if isinstance(value, bytes):
        return redact(value.decode("utf-8", "replace"))
    return redact(str(value) if isinstance(value, BaseException) else repr(value))


def _redact_named(name: str, value: Any, depth: int) -> Any:
    is_secret = is_secret_name(name) and isinstance(value, str | bytes | list | tuple | set | frozenset | Mapping)
    return HIDDEN if is_secret and value else redact_value(value, depth + 1)


# ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────────

QUIET = ("sqlalchemy", "alembic", "asyncio", "celery", "kombu")
"""Libraries whose routine messages would drown ours: a tick with nothing due logs nothing."""
_MULTILINE = frozenset({"exception", "stack"})
"""Tracebacks; every other value stays on one line."""
_LINES = "\n\t"
BRINGS_HANDLERS = ("uvicorn", "uvicorn.error", "uvicorn.access")


def configure(format: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Set up logging for this process, libraries included: one event per line, to stderr, redacted."""
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_EventFormatter(format == "people" or (format == "auto" and stream.isatty()), stream))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    _tame(level)


class _EventFormatter(logging.Formatter):
    """Formats events, and lines of libraries, as JSON or for people."""

    def __init__(self, is_for_people: bool, stream: TextIO) -> None:
        super().__init__()
        self._is_for_people, self._stream = is_for_people, stream

    def format(self, record: logging.LogRecord) -> str:
        # Everything is added before redaction; lines of libraries take the same path.
        event: MutableMapping[str, Any] = {
            **_CONTEXT.get(),
            **getattr(record, "fields", {}),
            "event": record.getMessage(),
            "level": record.levelname.lower(),
            "logger": record.name,
            "timestamp": f"{datetime.fromtimestamp(record.created, UTC):%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        if record.exc_info and record.exc_info[0]:
            event["exception"] = self.formatException(record.exc_info)
        event = escape_event(redact_event(event))
        return (
            self._rendered_for_people(event)
            if self._is_for_people
            else json.dumps(event, ensure_ascii=False, default=str)
        )

    def _rendered_for_people(self, event: MutableMapping[str, Any]) -> str:
        return str(self._renderer(None, "", event))

    @cached_property
    def _renderer(self) -> structlog.dev.ConsoleRenderer:
        plain = structlog.dev.plain_traceback
        return structlog.dev.ConsoleRenderer(colors=self._stream.isatty(), exception_formatter=plain)


def _tame(level: str) -> None:
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    for name in BRINGS_HANDLERS:
        # Their own handlers would print the line a second time, unredacted.
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def redact_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """The last step but one before rendering: redacts the event, its traceback included."""
    return {name: _redact_named(name, value, 0) for name, value in event.items()}


def escape_event(event: Mapping[str, Any]) -> dict[str, Any]:
    """Names and messages come from third parties: no value may move the cursor, recolour the terminal or start a new
    line."""
    return {escaped(name): _escaped(value, _LINES if name in _MULTILINE else "") for name, value in event.items()}


def _escaped(value: Any, keeps: str) -> Any:
    if isinstance(value, str):
        return escaped(value, keeps)
    if isinstance(value, dict):
        return {escaped(name): _escaped(inner, keeps) for name, inner in value.items()}
    return [_escaped(inner, keeps) for inner in value] if isinstance(value, list) else value


def logger(name: str) -> EventLogger:
    return EventLogger(name)


class EventLogger:
    """Logs events with fields: `log.info("source collected", source=7, new=3)`. Positional arguments fill the text.

    Through the standard library alone: structlog takes longer to import than most commands take, and ten times as long
    for each line.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, event: str, *values: object, **fields: Any) -> None:
        self._log(logging.DEBUG, event, values, fields)

    def info(self, event: str, *values: object, **fields: Any) -> None:
        self._log(logging.INFO, event, values, fields)

    def warning(self, event: str, *values: object, **fields: Any) -> None:
        self._log(logging.WARNING, event, values, fields)

    def error(self, event: str, *values: object, **fields: Any) -> None:
        self._log(logging.ERROR, event, values, fields)

    def exception(self, event: str, *values: object, **fields: Any) -> None:
        """An error, with the traceback of the exception that is being handled."""
        self._log(logging.ERROR, event, values, {"exc_info": True, **fields})

    def _log(self, level: int, event: str, values: tuple[object, ...], fields: dict[str, Any]) -> None:
        """`exc_info` among the fields is an exception, or True for the one that is being handled."""
        logger = self._logger
        if not logger.isEnabledFor(level):
            return
        error = fields.pop("exc_info", None)
        if isinstance(error, BaseException):
            error = (type(error), error, error.__traceback__)
        elif error:
            error = sys.exc_info()
        # Not by `logger.log`, which would walk the stack for the caller's file and line.
        logger.handle(logger.makeRecord(logger.name, level, "", 0, event, values, error, extra={"fields": fields}))


_CONTEXT: ContextVar[Mapping[str, Any]] = ContextVar("fields of all events", default=MappingProxyType({}))


def context() -> dict[str, Any]:
    """The fields that `bound` adds to the events of this thread now."""
    return dict(_CONTEXT.get())


@contextmanager
def bound(**context: Any) -> Iterator[None]:
    """Within this block, every event of this thread has these fields: request_id, run, source …"""
    token = _CONTEXT.set({**_CONTEXT.get(), **context})
    try:
        yield
    finally:
        _CONTEXT.reset(token)
