"""NGA's errors. They are recognised by their texts: one code has several meanings, and most come with status 200.

Guests are sent a page with a cookie first. The cookie is accepted a moment later, and sometimes only at the second
attempt.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from catchment.errors import (
    Gone,
    LoginNeeded,
    Missing,
    NetworkError,
    PlatformError,
    Refused,
    ServerTrouble,
    SlowDown,
    Unreadable,
)
from catchment.model import Answer, FailureScope, JsonObject, Refusal, Request, RetryWith
from catchment.platforms.nga import requests
from catchment.platforms.nga.encoding import decoded, entries, json_data, member, plain
from catchment.platforms.nga.html_form import LIST_MARK, THREAD_MARK
from catchment.platforms.nga.json_form import HELPS, data_of, is_list, is_thread

AGAIN = "it is requested again later"
LOG_IN = "add the cookies ngaPassportUid and ngaPassportCid of an account: `catchment credentials add nga NAME`"
GUEST_WAIT_SECONDS = 0.3
GUEST_TRIES = 2
_MOST_RETRIES = 4
"""Of one call: another form, the guest's cookie, once more, and an advertisement."""
_END = "没有符合条件的结果"
_GUESTS = "访客不能直接访问"
_NO_LOGIN = re.compile(r"未登录|没有登录|登录信息已过期|请先登录|需要登录")
_NO_THREAD = re.compile(r"找不到主题|找不到帖子|主题不存在|帖子不存在|已被删除")
_CLOSED = re.compile(r"时间超过限制|被设为隐藏|审核未通过|权限不足|无权|没有权限|已关闭|被锁定")
_NO_BOARD = re.compile(r"版面.{0,40}不存在|找不到版面|版面.{0,20}关闭")
_CODE = re.compile(r"<!--msgcodestart-->\s{0,9}(-?\d{0,9})")
_WORDS = re.compile(r"<!--msginfostart-->([^\0]{0,2000}?)<!--msginfoend-->")
_TITLE = re.compile(r"<title>([^<]{0,300})</title>", re.I)
_GUEST_COOKIE = re.compile(r"\bguestJs=([0-9]{1,12}_[0-9a-z]{1,20})")
_GIVEN_COOKIE = re.compile(r"(?:^|[\s,;])(lastvisit|ngaPassportUid)=([0-9A-Za-z_.%-]{1,100})")
_ADVERTISEMENT = re.compile(r"adpage_insert|<title>\s{0,9}欢迎访问NGA玩家社区\s{0,9}</title>", re.I)
_WHOLE_PAGE = re.compile(r"<!--(?:topic|post)listend-->|</html\s{0,9}>", re.I)
_LONGEST_WORDS = 200
_TAG = re.compile(r"<[^<>]{0,300}>")


class Complaint(NamedTuple):
    code: str
    words: str


def is_end_of_list(text: str) -> bool:
    """Whether an answer says that there are no further rows; that is no error."""
    complaint = complaint_of(text) if _END in text[:4_000] else None
    return complaint is not None and _END in complaint.words


def complaint_of(text: str) -> Complaint | None:
    """Returns the error in an answer; None: there is none."""
    if _is_json(text):
        try:
            return _of_json(json_data(text))
        except Unreadable:
            return None
    if LIST_MARK.search(text) or THREAD_MARK.search(text):
        return None
    code, words, title = _CODE.search(text), _WORDS.search(text), _TITLE.search(text)
    if code is None and words is None:
        complaint = plain(title[1]).strip() if title else ""
        return Complaint("", complaint) if _NO_THREAD.search(complaint) or _CLOSED.search(complaint) else None
    complaint = words[1] if words else title[1] if title else ""
    return Complaint(code[1] if code else "", " ".join(plain(_TAG.sub(" ", complaint)).split()))


def _of_json(document: JsonObject) -> Complaint | None:
    """An object with numbered texts, a list of texts, or one text; the first may begin with a code."""
    data, error = data_of(document), document.get("error")
    if not error or is_list(data) or is_thread(data):
        return None
    texts = entries(error) or [error]
    words = " ".join(plain(text) for text in texts if isinstance(text, str) and text)
    words = words or plain(member(data.get("__MESSAGE"), 1))
    code, separator, rest = words.partition(":")
    if separator and code.strip().isdecimal():
        return Complaint(code.strip(), rest.strip())
    return Complaint(plain(document.get("error_code")), words)


def _is_json(text: str) -> bool:
    begin = text[:200].lstrip()
    return begin.startswith(("{", "window.script_muti_get_var_store", "/*$js$*/"))


def refusal(answer: Answer, request: Request) -> Refusal | None:
    """Returns the error; None where the answer can be read, and where its status says everything."""
    if answer.status == 429 or not answer.body.strip():
        # A 503 without a body may be a refusal or a board that does not exist.
        is_empty = answer.status < 300
        return Refusal(ServerTrouble("the answer is empty", AGAIN)) if is_empty else None
    text = _text(answer)
    if text is None:
        return _broken(request)
    complaint = complaint_of(text)
    if complaint is None:
        return _of_guest(answer, request, text) or (_misshapen(answer, request, text) if answer.status < 300 else None)
    if _END in complaint.words:
        return None if request.state.get("page", 1) > 1 else Refusal(_no_threads(request))
    if _GUESTS in complaint.words or complaint.code in ("15", "46"):
        return _of_guest(answer, request, text) or Refusal(_login_needed(), blames=_blamed(request))
    return _of_words(complaint, request)


def _text(answer: Answer) -> str | None:
    try:
        return decoded(answer.body, is_strict=answer.body.lstrip()[:1] in (b"{", b"w", b"/"))
    except Unreadable:
        return None


def _of_words(complaint: Complaint, request: Request) -> Refusal:
    words = complaint.words
    if "访问速度过快" in words:
        return Refusal(SlowDown("NGA asks for fewer requests", AGAIN), blames=FailureScope.HOST)
    if "服务器忙" in words:
        return Refusal(ServerTrouble("NGA's server is busy", AGAIN))
    if _NO_LOGIN.search(words):
        return Refusal(_login_needed(), blames=_blamed(request))
    if "等待审核" in words or complaint.code == "51":
        in_review = Refused("the thread is waiting for review by the moderators", AGAIN)
        in_review.is_passing = True
        return _final(in_review)
    if _NO_BOARD.search(words) or complaint.code == "56":
        return Refusal(_no_threads(request))
    if _NO_THREAD.search(words):
        return Refusal(Gone("there is no such thread or post on NGA", "its stored items are kept"))
    if _CLOSED.search(words):
        return _final(Refused("NGA does not show it to this account", "an account with more rights may see it"))
    return Refusal(Refused("NGA says: {words}", AGAIN, words=words[:_LONGEST_WORDS] or f"error {complaint.code}"))


def _final(error: PlatformError) -> Refusal:
    """Returns a refusal that is not tried in another form: all of them say the same."""
    error.is_final = True
    return Refusal(error)


def _login_needed() -> PlatformError:
    return LoginNeeded("NGA does not show it to guests, or does not accept the cookies", LOG_IN)


def _blamed(request: Request) -> FailureScope:
    return FailureScope.CREDENTIAL if request.credential else FailureScope.REQUEST


def _no_threads(request: Request) -> PlatformError:
    return Missing("there is no such board on NGA, or it is empty", "check its number: a minus sign is part of it")


def _of_guest(answer: Answer, request: Request, text: str) -> Refusal | None:
    """Returns how a guest gets in: with the cookie of the page that was sent instead."""
    if request.credential is not None or LIST_MARK.search(text) or THREAD_MARK.search(text):
        return None
    cookie, tries = _GUEST_COOKIE.search(text), request.state.get("guest", 0)
    if cookie is None:
        if _GUESTS not in text[:20_000] or requests.form_of(request) == requests.HTML:
            return None
        # Only the page for people has the cookie.
        page = requests.in_form(request, requests.HTML)
        return Refusal(_login_needed(), cure=RetryWith(repeat=page, most_retries=_MOST_RETRIES))
    if tries >= GUEST_TRIES:
        return Refusal(_login_needed())
    cookies = {"guestJs": cookie[1], **dict(_GIVEN_COOKIE.findall(answer.headers.get("set-cookie", "")))}
    again = request.replace(
        params={**request.params, "rand": str(100 + int(cookie[1].partition("_")[0]) % 900)},
        state={**request.state, "guest": tries + 1},
    )
    cure = RetryWith(cookies=cookies, repeat=again, wait_seconds=GUEST_WAIT_SECONDS, most_retries=_MOST_RETRIES)
    return Refusal(_login_needed(), cure=cure)


def _misshapen(answer: Answer, request: Request, text: str) -> Refusal | None:
    """Returns the error for an answer that is not what was requested: an advertisement, or half a page."""
    if _is_json(text):
        try:
            json_data(text)
        except Unreadable:
            return _broken(request)
        return None
    is_marked = LIST_MARK.search(text) or THREAD_MARK.search(text)
    if is_marked and not _WHOLE_PAGE.search(text):
        return Refusal(NetworkError("the page is truncated", AGAIN))
    if not is_marked and (_ADVERTISEMENT.search(text[:20_000]) or "adpage_insert" in answer.url):
        is_first = not request.state.get("advertised")
        again = request.replace(state={**request.state, "advertised": True})
        error = Unreadable("NGA sends an advertisement instead of the page", AGAIN)
        return Refusal(error, cure=RetryWith(repeat=again, most_retries=_MOST_RETRIES) if is_first else None)
    return None


def _broken(request: Request) -> Refusal:
    """Returns the error for invalid JSON; another serializer of the site often returns it intact."""
    error = Unreadable("the JSON is malformed", HELPS)
    if requests.form_of(request) != requests.JSON:
        return Refusal(error)
    verbose = requests.in_form(request, requests.VERBOSE_JSON)
    return Refusal(error, cure=RetryWith(repeat=verbose, most_retries=_MOST_RETRIES))
