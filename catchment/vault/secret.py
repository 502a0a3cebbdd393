"""What a secret is made of, how people write one, and how it comes out of an address."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, unquote_plus, urlsplit

import msgspec

from catchment.errors import InvalidInput
from catchment.logs import is_secret_parameter
from catchment.model import Record

HEADER = re.compile(r"([A-Za-z][A-Za-z0-9_-]*):\s+(\S.*)|((?:cookie|authorization|x-[a-z0-9-]+)):(\S.*)", re.IGNORECASE)
SCHEME = re.compile(r"(?:Bearer|Basic|Token|Digest)\s+\S.*", re.IGNORECASE)
COOKIES = re.compile(r"[\w.-]+=[^=;\s][^;]*(?:;\s*[\w.-]+=[^;]*)*;?")
FORMS = (
    "give one of: user:password · Bearer TOKEN · header lines (Name: value) · cookies (a=b; c=d) · a bare token · "
    'JSON with any of "basic", "headers", "query", "cookies"'
)


class Secret(Record, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is to be sent with a request so that the other end knows us. Never shown: see `__repr__`."""

    basic: str | None = None
    """user:password"""
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    cookies: str | None = None
    """As in the header: a=b; c=d"""

    @classmethod
    def parse(cls, text: str) -> Secret:
        """What a person pipes in, understood. Raises InvalidInput, which does not repeat the text."""
        text = text.strip()
        if text.startswith("{"):
            return cls.from_json(text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines or not all(line.isprintable() for line in lines):
            raise InvalidInput("no secret was given, or none that can be sent", FORMS)
        headers = [match for line in lines if (match := HEADER.fullmatch(line))]
        if len(headers) == len(lines):
            return _from_headers(headers)
        if len(lines) > 1:
            raise InvalidInput("not every line is a header of the form Name: value", FORMS)
        return _from_line(lines[0])

    @classmethod
    def from_json(cls, text: str) -> Secret:
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.MsgspecError:
            # Its cause may quote the text.
            raise InvalidInput("the secret is not the JSON that was hoped for", FORMS) from None

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    def values(self) -> tuple[str, ...]:
        """Every text that must not be seen anywhere, for `know_secret`."""
        return tuple(dict.fromkeys(value for value in self._values() if value))

    def _values(self) -> Iterator[str]:
        if self.basic:
            yield from (self.basic, self.basic.partition(":")[2] or self.basic.rstrip(":"))
            yield b64encode(self.basic.encode()).decode()
        for value in self.headers.values():
            yield from (value, value.rpartition(" ")[2])
        yield from self.query.values()
        if self.cookies:
            yield self.cookies
            yield from (pair.partition("=")[2].strip() for pair in self.cookies.split(";"))

    def __repr__(self) -> str:
        """Which parts there are, and under which names; no value."""
        return f"Secret({'; '.join(self._parts())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # Rich asks for this rather than for `__repr__`, and the base class would tell it everything.
        return [("parts", self._parts())]

    def _parts(self) -> list[str]:
        single = [part for part in ("basic", "cookies") if getattr(self, part)]
        return single + [
            f"{part}: {', '.join(names)}" for part in ("headers", "query") if (names := getattr(self, part))
        ]


def _from_headers(matches: list[re.Match[str]]) -> Secret:
    headers = {match[1] or match[3]: (match[2] or match[4]).strip() for match in matches}
    cookies = [value for name, value in headers.items() if name.lower() == "cookie"]
    others = {name: value for name, value in headers.items() if name.lower() != "cookie"}
    return Secret(headers=others, cookies="; ".join(cookies) or None)


def _from_line(line: str) -> Secret:
    if SCHEME.fullmatch(line):
        return Secret(headers={"Authorization": line})
    if COOKIES.fullmatch(line):
        return Secret(cookies=line.rstrip(";"))
    if re.search(r"\s", line):
        raise InvalidInput("this cannot be understood as a secret", FORMS)
    if ":" in line.lstrip(":"):
        # A user without a password is one, too: many services take their key so.
        return Secret(basic=line)
    return Secret(headers={"Authorization": f"Bearer {line}"})


def strip_url(url: str) -> tuple[str, Secret | None]:
    """An address without what is secret in it, and that; None: nothing was. The rest of it stays letter by letter."""
    try:
        parts = urlsplit(url)
    except ValueError as error:
        raise InvalidInput(f"this is not an address: {error}") from None
    user_info, _, host = parts.netloc.rpartition("@")
    plain, query = _strip_query(parts.query)
    _, in_fragment = _strip_query(parts.fragment)
    if not user_info and not query and not in_fragment:
        return url, None
    # What stands behind # is never sent, so a secret there is dropped, not kept.
    stripped = parts._replace(netloc=host, query=plain, fragment="" if in_fragment else parts.fragment).geturl()
    basic = _basic(user_info) if user_info else None
    return stripped, Secret(basic=basic, query=query) if basic or query else None


def _basic(user_info: str) -> str:
    user, _, password = user_info.partition(":")
    return f"{unquote(user)}:{unquote(password)}"


def _strip_query(query: str) -> tuple[str, dict[str, str]]:
    kept: list[str] = []
    taken: dict[str, str] = {}
    for pair in query.split("&"):
        name, _, value = (unquote_plus(part) for part in pair.partition("="))
        if is_secret_parameter(name, value):
            taken[name] = value
        else:
            kept.append(pair)
    return "&".join(kept), taken
