"""What a list or a thread page says, whichever form it came in."""

from __future__ import annotations

from typing import NamedTuple


class BoardRow(NamedTuple):
    """A thread in a list."""

    tid: int
    subject: str
    author: str
    author_id: str
    created: int | None
    """Unix time; None: not shown."""
    last_reply: int | None
    replies: int | None
    fid: int | None = None
    type_bits: int = 0
    mirror_tid: int | None = None
    """The id of the row itself, where it only mirrors the thread."""
    parent: str = ""
    """The sub-board or collection it belongs to."""
    is_denied: bool = False
    """A placeholder for a thread that this account must not see."""


class BoardPage(NamedTuple):
    rows: list[BoardRow]
    name: str = ""
    fid: int | None = None
    pages: int | None = None
    """None: unknown."""
    topped: int | None = None
    """The thread that is pinned to the board; None: unknown."""
    unreadable: int = 0
    """How many rows could not be read."""


class ForumFloor(NamedTuple):
    """A post of a thread."""

    number: int | None
    """0: it opens the thread."""
    pid: int
    uid: str
    """A negative one is an anonymous author on this page only."""
    created: int | None
    subject: str
    content: str | None
    """BBCode, as plain text; None: not shown here."""
    edits: str = ""
    score: int | None = None
    files: tuple[str, ...] = ()
    is_withheld: bool = False
    """The site shows a notice instead of its content."""
    parent_pid: int | None = None
    """The post that it comments on, where that is stated besides its content; 0: the one that opens the thread."""


class ThreadAnswer(NamedTuple):
    """A page of a thread."""

    tid: int
    subject: str
    floors: list[ForumFloor]
    names: dict[str, str]
    """User names by uid."""
    replies: int | None
    last_reply: int | None = None
    fid: int | None = None
    board: str = ""
    page: int | None = None
    pages: int | None = None
    floors_per_page: int = 20
    is_digest: bool | None = None
    attachments: str = ""
    """The host and folder of attached files, if the page states them."""
    unreadable: int = 0
    """How many floors could not be read."""
    comments: tuple[ForumFloor, ...] = ()
    """Comments whose own rows are on other pages, without their text: JSON shows it only with the post commented on.
    In HTML, every row shows its text."""
