"""Logs, and the one redaction step that everything printed or stored passes through.

Two things keep a secret out of a text: its value, where we know it (`know_secret`), and its surroundings, where we do
not (a name that promises a secret, a scheme of HTTP, the user part of an address). Ordinary words stay as they are.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from collections.abc import Callable, Mapping, MutableMapping
from contextlib import AbstractContextManager
from datetime import date
from typing import Any, TextIO
from urllib.parse import quote, quote_plus

import structlog

HIDDEN = "***REDACTED***"

# ── what gives a secret away ───────────────────────────────────────────────────────────────────────────────────────

NAMES = r"""(?:
    # at the end of any name: access_token, clientSecret, PHPSESSID. What turns pages is a token in name only.
    (?<!next_)(?<!page_)(?<!pagination_)(?<!continuation_)token (?:_v?\d)?
    | secret | passw(?:or)?d | passphrase | (?:api|access|secret|private|master)[_-]?key
    | sess(?:ion)?_?id | passport_?cid | authorization | cookies? | cookie_value
    # only as a name, or a part of one: "classid" and "co-author" are none
    | (?<![a-z0-9]) (?:(?:\w{1,20}_)?session | sid | ct0 | a1 | kdt | pwd | csrf | xsrf | signature)
)"""
QUERY_NAMES = frozenset({"key", "auth", "sig", "sign", "hmac", "code_verifier"})
"""Names that promise a secret in an address, and mean too many other things elsewhere."""

SECRET_NAME = re.compile(rf"{NAMES}\Z", re.VERBOSE | re.IGNORECASE)

PAIR = re.compile(
    rf"""
    (?P<before> (?P<name>{NAMES}) \\{{0,3}}["']? \s{{0,3}} (?P<sign>[=:]|%3D) (?!=) \s{{0,3}} b? )
    (?:
        # in quotes, perhaps escaped ones (JSON inside JSON); a text that was cut off may lack the second one
        (?P<quote> \\{{0,3}}["'] ) (?P<inside> (?: (?!(?P=quote)) (?:\\.|.) )* )
        | (?P<scheme> (?:Bearer|Basic|Token|Digest) \s{{1,3}} )? (?P<bare> [^\s&;"'<>\\]+ )
    )""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
VALUE_END = re.compile(r"[ \t]*(?:[&;,})\]\"'<\r\n]|\Z)")
COOKIE_LINE = re.compile(r"((?:^|[^\w])(?:set-)?cookie\s{0,3}:\s{0,3})([^\s=;\"']+=[^\r\n\"']*)", re.IGNORECASE)
COOKIE_VALUE = re.compile(r"(=)([^;]*[^;\s])")
SCHEME = re.compile(r"\b(Bearer|Basic)(\s{1,3}|%20)([\w.~+/=-]{6,})", re.IGNORECASE)
SCHEME_WORDS = re.compile(r"tokens?|auth\w*|schemes?|credentials?|headers?", re.IGNORECASE)
USER_INFO = re.compile(r"(?<=://)[^\s/?#\"<>\x80-\U0010ffff]+@")
QUERY_VALUE = re.compile(rf"([?&](?:{'|'.join(sorted(QUERY_NAMES))})=)[^\s&;#\"'<>]+", re.IGNORECASE)
WEB_TOKEN = re.compile(r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*")

TRIGGERS = (
    *("token", "secret", "passw", "passphrase", "key", "sess", "passport", "auth", "cookie", "sid", "ct0", "a1", "kdt"),
    *("pwd", "csrf", "xsrf", "sig", "bearer", "basic", "@", "eyj", "hmac", "code_verifier"),
)
"""No pattern above matches a text that has none of these: most texts are done after looking for them."""

AMBIGUOUS = frozenset({"session", "sid", "a1"})
"""Names that are often something else: with a short value they are left alone."""
HARMLESS = frozenset(
    {HIDDEN.lower(), "null", "none", "true", "false", "undefined", "set", "missing", "expired", "invalid"}
)


# ── redaction ──────────────────────────────────────────────────────────────────────────────────────────────────────

SHORTEST = 6
"""Shorter secrets cannot be told from ordinary words."""
_known: tuple[str, ...] = ()


def know_secret(value: str) -> None:
    """From now on, hide this value wherever it occurs, as it is or encoded. Short ones would hide ordinary words."""
    global _known
    fit = {spelling for spelling in spellings(value) if len(value) >= SHORTEST and spelling not in HIDDEN}
    # The longest first, so that a secret within another does not leave the rest of it standing.
    _known = tuple(sorted({*_known, *fit}, key=len, reverse=True))


def spellings(value: str) -> set[str]:
    """A secret as it may stand in a text: as it is, in an address, in JSON."""
    return {value, quote(value, safe=""), quote_plus(value), json.dumps(value)[1:-1]}


def redact(text: str) -> str:
    """The text without secrets. Twice gives the same as once."""
    for value in _known:
        if value in text:
            text = text.replace(value, HIDDEN)
    if not may_hold_traces(text):
        return text
    for _, pattern, hide in _SHAPES:
        text = pattern.sub(hide, text)
    return text


def traces(text: str) -> list[str]:
    """What of a text would be hidden for the shape that it has, in words; nothing, if it may be kept as it is."""
    if not may_hold_traces(text):
        return []
    return [what for what, pattern, hide in _SHAPES if pattern.sub(hide, text) != text]


def may_hold_traces(text: str) -> bool:
    """Whether it is worth to look closer: a cheap question, and for most texts the last one."""
    lower = text.lower()
    return any(trigger in lower for trigger in TRIGGERS)


def is_secret_name(name: str) -> bool:
    """Whether what stands under this name is to be hidden: password, access_token, X-API-Key …"""
    return SECRET_NAME.search(name) is not None


def is_secret_parameter(name: str, value: str) -> bool:
    """The same for a parameter of an address, by its value too."""
    if name.lower() in AMBIGUOUS and value.isdigit():
        # The number of a section, say. Taken out, two addresses would become one.
        return False
    return (name.lower() in QUERY_NAMES or is_secret_name(name)) and not _is_harmless(name, value)


def _hide_cookies(match: re.Match[str]) -> str:
    return match[1] + COOKIE_VALUE.sub(rf"\1{HIDDEN}", match[2])


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
    """Unlike a word: digits, signs, capitals inside, or no end."""
    return len(value) > 24 or not value.isalpha() or not (value.islower() or value.istitle() or value.isupper())


_SHAPES: tuple[tuple[str, re.Pattern[str], Callable[[re.Match[str]], str] | str], ...] = (
    ("a cookie", COOKIE_LINE, _hide_cookies),
    ("a value whose name promises a secret", PAIR, _hide_pair),
    ("a login of HTTP", SCHEME, _hide_scheme),
    ("the user of an address", USER_INFO, f"{HIDDEN}@"),
    ("a key in an address", QUERY_VALUE, rf"\1{HIDDEN}"),
    ("a web token", WEB_TOKEN, HIDDEN),
)
"""In this order; what each one is, in words."""


def redact_value(value: Any, depth: int = 0) -> Any:
    """The same for whatever an event may hold. What is neither text nor number becomes redacted text."""
    if value is None or isinstance(value, bool | int | float | date):
        return value
    if isinstance(value, str):
        return redact(value)
    if depth < 6 and isinstance(value, Mapping):
        return {redact(str(name)): _redact_named(str(name), one, depth) for name, one in value.items()}
    if depth < 6 and isinstance(value, list | tuple | set | frozenset):
        return [redact_value(one, depth + 1) for one in value]
    if isinstance(value, bytes):
        return redact(value.decode("utf-8", "replace"))
    return redact(str(value) if isinstance(value, BaseException) else repr(value))


def _redact_named(name: str, value: Any, depth: int) -> Any:
    is_secret = is_secret_name(name) and isinstance(value, str | bytes | list | tuple | set | frozenset | Mapping)
    return HIDDEN if is_secret and value else redact_value(value, depth + 1)


# ── events ─────────────────────────────────────────────────────────────────────────────────────────────────────────

QUIET = ("apscheduler", "sqlalchemy", "alembic", "asyncio")
"""Libraries whose remarks on ordinary work would drown ours: a tick with nothing due is silent."""
BRINGS_HANDLERS = ("uvicorn", "uvicorn.error", "uvicorn.access")


def configure(format: str = "auto", level: str = "info", stream: TextIO | None = None) -> None:
    """Set up logging for this process: ours and that of all libraries, one event a line, to stderr, redacted."""
    stream = stream or sys.stderr
    # Everything that is in an event before it is redacted; libraries' events take the same way.
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_formatter(shared, format == "people" or (format == "auto" and stream.isatty()), stream))
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    _tame(level)


def _formatter(shared: list[structlog.typing.Processor], is_for_people: bool, stream: TextIO) -> logging.Formatter:
    renderer: structlog.typing.Processor = structlog.processors.JSONRenderer(ensure_ascii=False)
    if is_for_people:
        plain = structlog.dev.plain_traceback
        renderer = structlog.dev.ConsoleRenderer(colors=stream.isatty(), exception_formatter=plain)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            structlog.processors.format_exc_info,
            redact_event,
            renderer,
        ],
    )


def _tame(level: str) -> None:
    # It warns whenever a wake finds the last one still at work: every few seconds of a long round.
    logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(logging.WARNING, logging.getLevelNamesMapping()[level.upper()]))
    for name in BRINGS_HANDLERS:
        # Their own handlers would print the line once more, unredacted.
        logging.getLogger(name).handlers.clear()
        logging.getLogger(name).propagate = True


def redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The processor that every event passes last before it is rendered, its traceback included."""
    return {name: _redact_named(name, value, 0) for name, value in event.items()}


def logger(name: str) -> structlog.stdlib.BoundLogger:
    bound: structlog.stdlib.BoundLogger = structlog.get_logger(name)
    return bound


def bound(**context: Any) -> AbstractContextManager[None]:
    """Within this block, every event of this thread carries these: request_id, run, source …"""
    return structlog.contextvars.bound_contextvars(**context)
