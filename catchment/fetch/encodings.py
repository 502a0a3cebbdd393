"""Undoing gzip, deflate and brotli. Pure.

libcurl could do it while receiving, but passes a truncated body on as if it were whole and refuses gzip in several
members, which some servers send. So it hands over what came by wire, and the end of the stream is checked here.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import brotli

from catchment.errors import NetworkError, TooLarge, Unreadable

ACCEPTED = "gzip, br"

_GZIP_MAGIC = b"\x1f\x8b"
_FIRST_PIECE = 4096
_MOST_MEMBERS = 10_000
"""Of one gzip body. Honest servers begin a new one with every few kilobytes at most; each costs as much as a page."""
_MOST_ENCODINGS = 3
"""On top of each other; there are bodies that unpack to themselves, again and again."""
_NOTHING_DONE = ("", "identity", "none", "utf-8")
"""What servers write for a body that is not encoded at all."""


def decoded(body: bytes, content_encoding: str, max_bytes: int) -> bytes:
    """The body before it was compressed. Never more than `max_bytes`, and never a part taken for the whole."""
    if content_encoding:
        names = [name.strip() for name in content_encoding.lower().split(",")]
        if len(names) > _MOST_ENCODINGS:
            raise Unreadable(f"the answer is encoded {len(names)} times over", "the server is at fault")
        # The header names the encodings in the order in which they were applied.
        for name in reversed(names):
            body = _decoded_once(body, name, max_bytes)
    if len(body) > max_bytes:
        raise too_large(max_bytes)
    return body


def too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the answer is larger than {max_bytes:,} bytes", "raise the size limit if that is to be expected")


def _decoded_once(body: bytes, name: str, max_bytes: int) -> bytes:
    if not body or name in _NOTHING_DONE:
        return body
    decode = _DECODERS.get(name)
    if decode is None:
        raise Unreadable(f"the answer is encoded as {name[:20]!r}, which was not asked for", "the server is at fault")
    try:
        return decode(body, max_bytes)
    except (zlib.error, brotli.error):
        raise Unreadable(f"the answer says that it is {name}, but is not", "the server is at fault") from None


def _gunzipped(body: bytes, max_bytes: int) -> bytes:
    members: list[bytes] = []
    at, room = 0, max_bytes
    while body.startswith(_GZIP_MAGIC, at) or not members:
        if len(members) == _MOST_MEMBERS:
            raise Unreadable(f"the answer is in more than {_MOST_MEMBERS:,} pieces", "the server is at fault")
        member, at = _inflated(body, at, zlib.MAX_WBITS | 16, room)
        members.append(member)
        room -= len(member)
    # What follows the last member and is none itself is padding: every gzip reader ignores it.
    return b"".join(members)


def _undeflated(body: bytes, max_bytes: int) -> bytes:
    # "deflate" ought to be a zlib stream; some servers send it without the two bytes at the front.
    has_zlib_header = body[0] & 0x0F == 8 and int.from_bytes(body[:2], "big") % 31 == 0
    return _inflated(body, 0, zlib.MAX_WBITS if has_zlib_header else -zlib.MAX_WBITS, max_bytes)[0]


def _inflated(body: bytes, at: int, window_bits: int, max_bytes: int) -> tuple[bytes, int]:
    """The stream that begins at a place, and the place where it ends."""
    stream = zlib.decompressobj(window_bits)
    pieces, size, room = [], _FIRST_PIECE, max_bytes
    # In growing pieces: at its end the stream copies what it was given too much, and the rest of a large body, copied
    # for each of many small members, would take minutes.
    while not stream.eof and at < len(body):
        # One byte more than allowed tells "exactly full" from "too much"; 0 would mean no limit at all.
        pieces.append(stream.decompress(body[at : at + size], room + 1))
        at, room, size = at + size, room - len(pieces[-1]), size * 2
        if room < 0:
            raise too_large(max_bytes)
    if not stream.eof:
        raise _cut_off()
    return b"".join(pieces), min(at, len(body)) - len(stream.unused_data)


def _unbrotlied(body: bytes, max_bytes: int) -> bytes:
    stream = brotli.Decompressor()
    whole: bytes = stream.process(body, output_buffer_limit=max_bytes + 1)
    if len(whole) > max_bytes:
        raise too_large(max_bytes)
    if not stream.is_finished():
        raise _cut_off()
    return whole


def _cut_off() -> NetworkError:
    error = NetworkError("the answer was cut off inside its compression", "it is asked for again")
    error.is_contact = True
    return error


_DECODERS: dict[str, Callable[[bytes, int], bytes]] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _undeflated,
    "br": _unbrotlied,
}
