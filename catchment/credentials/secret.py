"""Secrets: their parts, how people write them, and how they are taken out of a URL."""

from __future__ import annotations

import re
from base64 import b64encode
from typing import Any
from urllib.parse import parse_qsl, unquote, unquote_plus, urlsplit

import msgspec

from catchment.decoders import json_decoder
from catchment.errors import InvalidInput
from catchment.lazy import pattern
from catchment.logs import is_secret_parameter, looks_secret
from catchment.model import Record

HEADER = pattern(r"([A-Za-z][A-Za-z0-9_-]*):\s+(\S.*)|((?:cookie|authorization|x-[a-z0-9-]+)):(\S.*)", re.IGNORECASE)
SCHEME = pattern(r"(?:Bearer|Basic|Token|Digest)\s+\S.*", re.IGNORECASE)
COOKIES = pattern(r"[\w.-]+=[^=;\s][^;]*(?:;\s*[\w.-]+=[^;]*)*;?")
UUID = pattern(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_RANDOM_LENGTH = 32
FORMS = (
    "use one of: user:password · Bearer TOKEN · header lines (Name: value) · cookies (a=b; c=d) · a bare token · JSON "
    'with any of "basic", "headers", "query", "cookies"'
)


class Secret(Record, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is sent with a request to authenticate it. Never shown: see `__repr__`."""

    basic: str | None = None
    """user:password"""
    headers: dict[str, str] = {}
    query: dict[str, str] = {}
    cookies: str | None = None
    """As in the header: a=b; c=d"""

    @classmethod
    def parse(cls, text: str) -> Secret:
        """Parses what a person pipes in. Raises InvalidInput, which does not repeat the text."""
        text = text.strip()
        if text.startswith("{"):
            return cls.from_json(text)
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        if not lines or not all(line.isprintable() for line in lines):
            raise InvalidInput("the secret is empty or cannot be sent", FORMS)
        headers = [match for line in lines if (match := HEADER.fullmatch(line))]
        if len(headers) == len(lines):
            values = {match[1] or match[3]: (match[2] or match[4]).strip() for match in headers}
            cookies = [value for name, value in values.items() if name.lower() == "cookie"]
            others = {name: value for name, value in values.items() if name.lower() != "cookie"}
            return cls(headers=others, cookies="; ".join(cookies) or None)
        if len(lines) > 1:
            raise InvalidInput("not every line is a header of the form Name: value", FORMS)
        [line] = lines
        if SCHEME.fullmatch(line):
            return cls(headers={"Authorization": line})
        if COOKIES.fullmatch(line):
            return cls(cookies=line.rstrip(";"))
        if re.search(r"\s", line):
            raise InvalidInput("this is not a known form of secret", FORMS)
        if ":" in line.lstrip(":"):
            # A user without a password is one, too: many services take their key this way.
            return cls(basic=line)
        return cls(headers={"Authorization": f"Bearer {line}"})

    @classmethod
    def from_json(cls, text: str) -> Secret:
        try:
            return json_decoder(cls).decode(text)
        except msgspec.MsgspecError:
            # Its cause may quote the text.
            raise InvalidInput("the secret is not JSON of the expected form", FORMS) from None

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    def values(self) -> tuple[str, ...]:
        """Returns every text that must not be visible anywhere, for `know_secret`."""
        texts = [*self.query.values()]
        if self.basic:
            password = self.basic.partition(":")[2] or self.basic.rstrip(":")
            texts += (self.basic, password, b64encode(self.basic.encode()).decode())
        for value in self.headers.values():
            texts += (value, value.rpartition(" ")[2])
        if self.cookies:
            texts += (self.cookies, *(pair.partition("=")[2].strip() for pair in self.cookies.split(";")))
        return tuple(dict.fromkeys(filter(None, texts)))

    def __repr__(self) -> str:
        """Shows which parts there are, and under which names; no value."""
        return f"Secret({'; '.join(self._parts())})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        # Rich calls this rather than `__repr__`, and the base class would show it everything.
        return [("parts", self._parts())]

    def _parts(self) -> list[str]:
        single = [part for part in ("basic", "cookies") if getattr(self, part)]
        return single + [
            f"{part}: {', '.join(names)}" for part in ("headers", "query") if (names := getattr(self, part))
        ]


def strip_url(url: str, *, takes_unsure: bool = False) -> tuple[str, Secret | None]:
    """Returns a URL without its secret, and the secret; None if there was none. The rest stays unchanged.

    `takes_unsure`: a value that only looks like a secret is taken for one, too.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise InvalidInput("this is not an address", "enter one like https://example.org/feed.xml") from None
    user_info, _, host = parts.netloc.rpartition("@")
    plain, query = _strip_query(parts.query, takes_unsure)
    _, in_fragment = _strip_query(parts.fragment, takes_unsure)
    if not user_info and not query and not in_fragment:
        return url, None
    # The part behind # is never sent, so a secret there is dropped, not kept.
    stripped = parts._replace(netloc=host, query=plain, fragment="" if in_fragment else parts.fragment).geturl()
    user, _, password = user_info.partition(":")
    basic = f"{unquote(user)}:{unquote(password)}" if user_info else None
    return stripped, Secret(basic=basic, query=query) if basic or query else None


def unsure_names(url: str) -> list[str]:
    """Returns the parameters of a URL whose values look like secrets, while their names do not say so."""
    try:
        pairs = parse_qsl(urlsplit(url).query)
    except ValueError:
        return []
    return [name for name, value in pairs if looks_secret(name, value)]


def unsure_notes(url: str) -> list[str]:
    """Returns a sentence about every part of a URL that looks like a secret and is kept readable."""
    notes = [
        f"the value of {name} looks like a secret and stays readable in the address; if it is one, remove the source "
        "and add it again with --keep-secret"
        for name in unsure_names(url)
    ]
    # A credential cannot be sent as a part of the path: it can be neither encrypted nor left out.
    place = _unnamed_secret(url)
    if place is not None:
        notes.append(
            f"{place} looks like a secret and stays readable; if it is one, keep the database, its backups and "
            "exported lists of sources private"
        )
    return notes


def _unnamed_secret(url: str) -> str | None:
    """Returns the part of a URL, other than a parameter of the query, that looks like a secret; None if there is
    none."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    for piece in re.split(r"[/;]", parts.path):
        name, sign, value = piece.partition("=")
        if sign and (is_secret_parameter(unquote(name), value) or looks_secret(name, value)):
            return f"the value of {name} in the path of the address"
        if _is_random(piece):
            return "a part of the path of the address"
    if any(_is_random(piece) for piece in re.split("[&;]", parts.query) if "=" not in piece):
        return "the query of the address"
    return None


def _is_random(piece: str) -> bool:
    # Many sites give everything they publish such an id.
    is_id = UUID.fullmatch(piece) is not None
    return len(piece) >= _RANDOM_LENGTH and not is_id and looks_secret("", piece)


def _strip_query(query: str, takes_unsure: bool) -> tuple[str, dict[str, str]]:
    kept: list[str] = []
    taken: dict[str, str] = {}
    # Some sites separate parameters by semicolons.
    pairs = re.split(r"([&;])", query)
    for separator, pair in zip(["", *pairs[1::2]], pairs[::2], strict=True):
        name, _, value = (unquote_plus(part) for part in pair.partition("="))
        if is_secret_parameter(name, value) or (takes_unsure and looks_secret(name, value)):
            taken[name] = value
        else:
            kept.append(separator + pair)
    return ("".join(kept) if not taken else "".join(kept).lstrip("&;")), taken
