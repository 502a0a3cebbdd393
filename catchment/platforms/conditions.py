"""Asking only for what changed: the validators of the last answer, for platforms whose sites have them."""

from __future__ import annotations

from catchment.model import Progress


def conditions(progress: Progress, reader_version: int) -> dict[str, str]:
    """Headers that let a site say "nothing changed". None after an answer that was not read whole, or that was read by
    an older reader: the whole answer is wanted then."""
    was_read = progress.watermark is not None or progress.body_hash is not None
    if not was_read or progress.reader_version != reader_version:
        return {}
    # Verbatim, with W/ and quotes: a server compares characters.
    told = {"If-None-Match": progress.etag, "If-Modified-Since": progress.last_modified}
    return {name: value for name, value in told.items() if value}
