"""The way in, and what is shown when something did not work."""

from __future__ import annotations

from catchment.pages.showing import Reader, page


def way_in(reader: Reader, *, is_link_wrong: bool = False, is_key_wrong: bool = False) -> str:
    """How to get in."""
    return page("way_in.html", reader, is_link_wrong=is_link_wrong, is_key_wrong=is_key_wrong)


def failure(status: int, code: str, message: str, request_id: str, reader: Reader) -> str:
    """What did not work: in the reader's language as far as its code tells, and as it was said."""
    words = reader.speech.known("error", code)
    is_missing = status == 404
    return page("failure.html", reader, is_missing=is_missing, words=words, message=message, request_id=request_id)
