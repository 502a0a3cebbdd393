"""Requests to NGA: pages of boards and threads, in HTML or JSON, each form the other's fallback.

HTML comes first: it is what the site shows to guests, and only there a comment's own floor has its text. The JSON of
`__output=8` is sometimes broken where that of `__output=11`, from another serializer, is whole.
"""

from __future__ import annotations

from collections.abc import Sequence

from catchment.model import Identity, JsonObject, Request, Source

HOSTS = ("bbs.nga.cn", "ngabbs.com", "nga.178.com", "bbs.ngacn.cc", "nga.donews.com")
"""They show the same; cookies belong to one of them."""
BOARD, THREAD, POST, WATCHED = "board", "thread", "post", "watched"
"""Steps: a page of a board, a page of a thread, one post, a thread that is a source."""
HTML, JSON, VERBOSE_JSON = "", "8", "11"
"""Forms, by the value of `__output`."""
NEWEST = "threads"


def board(source: Source) -> Request:
    """Returns the request for the first page of a source."""
    name, _, number = source.target.rpartition("=")
    if name == "tid":
        return _request(source, "read.php", {"tid": number, "page": "1"}, WATCHED, {"tid": int(number)})
    params = {name or "fid": number, "order_by": "postdatedesc", "page": "1"}
    return _request(source, "thread.php", params, BOARD, {"board": source.target})


def next_page(request: Request, page: int, shown: int) -> Request:
    """Returns the request for a later page of a board, in the same form. `shown` distinguishes the previous page from
    it."""
    params = {name: value for name, value in request.params.items() if name != "rand"}
    state = {**request.state, "page": page, "shown": shown}
    return _in_forms(request.replace(params={**params, "page": str(page)}, state=state))


def thread_page(source: Source, tid: int, page: int) -> Request:
    params = {"tid": str(tid), "page": str(page)}
    return _request(source, "read.php", params, THREAD, {"tid": tid, "page": page})


def rechecked_page(source: Source, tid: int, page: int, ids: Sequence[str]) -> Request:
    """Returns the request for the page on which these floors were."""
    params = {"tid": str(tid), "page": str(page)}
    return _request(source, "read.php", params, THREAD, {"tid": tid, "page": page, "rechecked": list(ids)})


def post(source: Source, pid: int, external_id: str) -> Request:
    """Returns the request for one post by its id."""
    request = _request(source, "read.php", {"pid": str(pid)}, POST, {"pid": pid})
    return request.replace(item_id=external_id)


def comments(source: Source, post_id: str, ids: Sequence[str]) -> Request:
    """Returns the request for a post below which the texts of comments are. JSON comes first: there the texts are part
    of what is read. It names no item: that the post is gone says nothing about the comments."""
    number = post_id[1:]
    params = {"pid": number} if post_id.startswith("p") else {"tid": number, "page": "1"}
    return _in_forms(in_form(_request(source, "read.php", params, POST, {"comments": list(ids)}), JSON))


def in_form(request: Request, form: str) -> Request:
    """Returns the same request in another form, without a fallback."""
    params = {name: value for name, value in request.params.items() if name not in ("__output", "rand")}
    return request.replace(params={**params, "__output": form} if form else params, fallback=None)


def form_of(request: Request) -> str:
    return request.params.get("__output", HTML)


def _in_forms(request: Request) -> Request:
    """Returns the request with the other forms as its fallbacks."""
    forms = (HTML, JSON, VERBOSE_JSON) if form_of(request) == HTML else (JSON, VERBOSE_JSON, HTML)
    chain: Request | None = None
    for form in reversed(forms):
        chain = in_form(request, form).replace(fallback=chain)
    assert chain is not None
    return chain


def _request(source: Source, path: str, params: dict[str, str], step: str, state: JsonObject) -> Request:
    host = source.settings.get("host", HOSTS[0])
    return _in_forms(
        Request(
            f"https://{host}/{path}",
            params=params,
            step=step,
            listing=NEWEST if step in (BOARD, WATCHED) else "",
            state={"page": 1, **state},
            identity=Identity.OPTIONAL,
            credential=source.credential,
        )
    )
