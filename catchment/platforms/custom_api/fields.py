"""Settings of a source: how its API is requested, where the data is in its answers, how it pages.

Expressions are JMESPath within limits: compiled when a source is added, bounded in cost when used. A dozen characters
are enough to double a list, and a dozen more to do that forty times. So the result of an expression is measured while
it is built, and one that grows too large is stopped there.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, cast

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError, JMESPathTypeError
from jmespath.functions import Functions
from jmespath.visitor import Options, TreeInterpreter

from catchment.lazy import pattern
from catchment.logs import is_secret_name
from catchment.messages import message
from catchment.model import Field, PlanPart, SettingValues

LONGEST = 500
MOST_WORK = 5_000_000
"""Values visited and made for one answer: a second of work, and more than the largest answer needs."""
_LONGEST_SAID = 200
_CHARACTERS_A_VALUE = 32
"""How many characters of a text count as one value."""
_FUNCTIONS = frozenset(Functions.FUNCTION_TABLE)


class TooMuch(Exception):
    """Expressions that make far too much of an answer. The rest of the answer is not examined."""


def checked(text: object) -> str:
    """Returns the expression if it is valid; otherwise raises a ValueError that says what is wrong with it."""
    if not isinstance(text, str) or not text.strip():
        raise ValueError(message("not a JMESPath expression; for example: data.items"))
    if len(text) > LONGEST:
        raise ValueError(
            message("the expression has {size} characters; the limit is {most}", size=len(text), most=LONGEST)
        )
    try:
        tree = _tree(text)
    except (JMESPathError, RecursionError, ValueError) as error:
        at = getattr(error, "lex_position", None)
        where = f" (at character {at + 1})" if isinstance(at, int) else ""
        raise ValueError(f"not a JMESPath expression{where}; for example: data.items") from None
    if unknown := _functions(tree) - _FUNCTIONS:
        raise ValueError(f"JMESPath has no function {min(unknown)}; it has {', '.join(sorted(_FUNCTIONS))}")
    return text


@lru_cache(maxsize=1024)
def _tree(text: str) -> dict[str, Any]:
    return cast(dict[str, Any], jmespath.compile(text).parsed)


def _functions(tree: dict[str, Any]) -> set[str]:
    """Returns the names of all functions that an expression calls."""
    names, waiting = set(), [tree]
    while waiting:
        node = waiting.pop()
        if node["type"] == "function_expression":
            names.add(node["value"])
        waiting += [child for child in node["children"] if isinstance(child, dict)]
    return names


class LimitedSearch(TreeInterpreter):  # type: ignore[misc]  # the library has no types
    """Searches one answer, by one expression after the other. The sizes of their results are added up, and limited."""

    def __init__(self, most: int = MOST_WORK) -> None:
        super().__init__(Options())
        self._left = most

    def __call__(self, text: str, document: Any) -> Any:
        """Returns what the expression finds; None for nothing. Raises ValueError if it does not fit the document."""
        try:
            return self.visit(_tree(text), document)
        except JMESPathTypeError as error:
            expected = ", ".join(str(type_name) for type_name in error.expected_types)
            what = f"its function {error.function_name} takes {expected}, and was given {error.actual_type}"
            raise ValueError(what[:_LONGEST_SAID]) from None
        except (JMESPathError, RecursionError, TypeError, OverflowError):
            raise ValueError(message("it does not fit what is there")) from None

    def visit(self, node: dict[str, Any], *arguments: Any, **more: Any) -> Any:
        result = super().visit(node, *arguments, **more)
        if node["type"] in ("multi_select_list", "multi_select_dict"):
            # Only here does a value get into two positions: whatever copies it later pays for both.
            self._left -= _weight(result, self._left)
        elif isinstance(result, list | dict):
            self._left -= 1 + len(result)
        elif isinstance(result, str):
            self._left -= 1 + len(result) // _CHARACTERS_A_VALUE
        else:
            self._left -= 1
        if self._left < 0:
            raise TooMuch(message("the expressions produce too much output from the answer"))
        return result


def _weight(value: Any, most: int) -> int:
    """Returns how many values an expression's result contains, repeated ones included; stops counting at `most`."""
    weight, waiting = 0, [value]
    while waiting and weight <= most:
        group = waiting.pop()
        weight += 1
        if isinstance(group, str):
            weight += len(group) // _CHARACTERS_A_VALUE
        elif isinstance(group, list | dict):
            waiting.extend(group.values() if isinstance(group, dict) else group)
    return weight


HEADER_NAME = pattern(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}")
PARAMETER = pattern(r"[A-Za-z0-9_.~\[\]$:-]{1,100}")
_MOST_HEADERS, _LONGEST_HEADER, _LONGEST_WORD = 20, 1_000, 100
_KEEP_SECRETS = "a secret belongs into the vault: `catchment credentials add custom_api NAME`, then --credential NAME"
_BEARS_IDENTITY = frozenset(("authorization", "proxy-authorization", "cookie", "x-auth", "api-key", "apikey"))

_TRANSPORT = frozenset(
    ("host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "expect", "keep-alive")
)
"""Set by the HTTP client: another value would send the request elsewhere, or break it apart."""

SNAPSHOT, NEWEST_FIRST = "snapshot", "newest_first"
NONE, CURSOR, PAGE, OFFSET, LINK = "none", "cursor", "page", "offset", "link"
EPOCH, EPOCH_MS, ISO = "epoch", "epoch_ms", "iso"


def _header_name(value: object) -> str:
    if not isinstance(value, str) or not HEADER_NAME.fullmatch(value):
        raise ValueError(message("not the name of a header; for example: X-Api-Key"))
    if value.lower() in _TRANSPORT:
        raise ValueError(
            message("the header {name} is set by the HTTP client and cannot be changed; leave it out", name=value)
        )
    return value


def _parameter(value: object) -> str:
    if not isinstance(value, str) or not PARAMETER.fullmatch(value):
        raise ValueError(message("not the name of a parameter; for example: since"))
    return value


def _secret_header(value: object) -> str:
    name, sign, before = value.partition(":") if isinstance(value, str) else ("", "", "")
    is_word = before.isascii() and before.isprintable() and len(before) <= _LONGEST_WORD
    if not HEADER_NAME.fullmatch(name.strip()) or not is_word or (sign and not before.strip()):
        raise ValueError(
            message("a header's name, and perhaps a word before the secret: X-Api-Key, or Authorization: Token")
        )
    header = _header_name(name.strip())
    return f"{header}: {before.strip()}" if sign else header


def _headers(value: object) -> dict[str, str]:
    if isinstance(value, str):
        with suppress(msgspec.DecodeError):
            value = msgspec.json.decode(value)
    if not isinstance(value, Mapping) or len(value) > _MOST_HEADERS:
        raise ValueError('an object of at most 20 headers; for example: {"Accept": "application/json"}')
    for name, text in value.items():
        if (header := _header_name(name)).lower() in _BEARS_IDENTITY or is_secret_name(header):
            raise ValueError(f"{header}: {_KEEP_SECRETS}")
        if not isinstance(text, str) or not text.isprintable() or len(text) > _LONGEST_HEADER:
            raise ValueError(f"the value of a header is a text on one line, of at most {_LONGEST_HEADER} characters")
    return dict(value)


_PARTS = {
    "id": ("ID", "编号"),
    "title": ("Title", "标题"),
    "text": ("Plain text", "纯文本正文"),
    "html": ("Text as HTML", "HTML 正文"),
    "url": ("Address of the item", "阅读地址"),
    "target_url": ("Address it links to", "指向的地址"),
    "author": ("Author", "作者"),
    "author_id": ("ID of the author", "作者编号"),
    "created_at": (
        "Time of posting: ISO 8601, RFC 822, seconds or milliseconds since 1970 …",
        "发布时间：ISO 8601、RFC 822、1970 年以来的秒或毫秒等",
    ),
    "edited_at": ("Time of the last edit", "最后修改时间"),
    "score": ("Score, likes or points", "得分、点赞或积分"),
    "reply_count": ("Number of replies", "回复数"),
    "view_count": ("Number of views", "浏览数"),
    "last_reply_at": ("Time of the last reply", "最后回复时间"),
    "tags": ("Tags: a list, or text with commas", "标签：列表，或逗号分隔的文本"),
    "media": (
        "Images, videos, audio and files: addresses, or objects that contain one",
        "图片、视频、音频和文件：地址，或含地址的对象",
    ),
    "language": ("Language", "语言"),
    "is_pinned": ("Whether it is pinned", "是否置顶"),
    "is_deleted": ("Whether it is marked as deleted", "是否标记为已删除"),
}
_IN_ITEM = (" (JMESPath within an item; common names by default)", "（条目内的 JMESPath；默认尝试常见名称）")

OF_ITEMS = tuple(Field(name, f"{what}{_IN_ITEM[0]}", check=checked) for name, (what, _) in _PARTS.items())
"""One for each part of an item: `Item` has the same names."""

PRESETS: dict[str, SettingValues] = {
    # WordPress answers a page beyond the last with 400, which `paging.is_past_the_last` recognises.
    "wordpress": {
        "id": "id",
        "title": "title.rendered",
        "html": "content.rendered || excerpt.rendered",
        "url": "link",
        # Names need `_embed` in the URL; without it there are only numbers.
        "author": "_embedded.author[0].name",
        "author_id": "author",
        "tags": '_embedded."wp:term"[][].name',
        # Its `date` is in the zone of the site and does not say which; `date_gmt` lacks the zone as well, but is UTC.
        "created_at": "date_gmt || date",
        "edited_at": "modified_gmt || modified",
        "paging": PAGE,
        "page_param": "page",
        "size_param": "per_page",
        "page_size": 100,
    },
    # `next` is the whole URL of the next page, in all three of its paging styles.
    "django_rest": {"items": "results", "paging": CURSOR, "cursor": "next"},
    "link_header": {"paging": LINK},
}
"""Settings for well-known sorts of API, by name. A source's own settings come before them."""

FIELDS = (
    Field(
        "preset",
        "Settings for a well-known type of API: WordPress, Django REST framework, or paging by Link header;"
        " your own settings override them",
        choices=tuple(PRESETS),
    ),
    Field("items", "The list of items (JMESPath on the answer); found automatically by default", check=checked),
    *OF_ITEMS,
    Field("error", "What marks an answer with status 200 as an error (JMESPath)", check=checked),
    Field("listing", "Order of the list", default=SNAPSHOT, choices=(SNAPSHOT, NEWEST_FIRST), decides=PlanPart.LISTING),
    Field(
        "limit",
        "Number of items to read first; for a snapshot, the maximum",
        default=100,
        minimum=1,
        maximum=10000,
        decides=PlanPart.LIMIT,
    ),
    Field("reach", "Number of items the API shows in total, if known", minimum=1, maximum=10_000_000),
    Field("paging", "Paging method", default=NONE, choices=(NONE, CURSOR, PAGE, OFFSET, LINK)),
    Field("cursor", "The next cursor (JMESPath on the answer); found automatically by default", check=checked),
    Field("cursor_param", "Parameter for the cursor", default="cursor", check=_parameter),
    Field("page_param", "Parameter for the page number", default="page", check=_parameter),
    Field("first_page", "Number of the first page", default=1, minimum=0, maximum=1),
    Field(
        "offset_param",
        "Parameter for the offset; its value in the address is the start",
        default="offset",
        check=_parameter,
    ),
    Field("size_param", "Parameter for the page size", check=_parameter),
    Field("page_size", "Number of items per page", default=50, minimum=1, maximum=1000),
    Field("max_pages", "Maximum number of pages per collection", default=50, minimum=1, maximum=200),
    Field("since_param", "Parameter for the time of the newest stored item", check=_parameter),
    Field("since_format", "Format of that time", default=ISO, choices=(ISO, EPOCH, EPOCH_MS)),
    Field("header", "Header for the credential's secret: X-Api-Key, Authorization: Token", check=_secret_header),
    Field("headers", "Additional headers, as an object; no secrets", check=_headers),
)

CHINESE = {
    "JSON APIs": "JSON 接口",
    "JSON API": "JSON 接口",
    "A list of items from a JSON API: its address": "JSON 接口返回的列表：给出其地址",
    "Settings for a well-known type of API: WordPress, Django REST framework, or paging by Link header; your own "
    "settings override them": ("常见接口的预设：WordPress、Django REST framework 或按 Link 头翻页；单独填写的设置优先"),
    "The list of items (JMESPath on the answer); found automatically by default": (
        "条目列表的位置（对响应的 JMESPath）；默认自动查找"
    ),
    "What marks an answer with status 200 as an error (JMESPath)": "状态码为 200 但实际出错时的标志（JMESPath）",
    "Order of the list": "列表的排序方式",
    "Number of items to read first; for a snapshot, the maximum": "首次读取的条目数；对快照则为总数上限",
    "Number of items the API shows in total, if known": "接口最多显示多少条（如果知道）",
    "Paging method": "翻页方式",
    "The next cursor (JMESPath on the answer); found automatically by default": (
        "下一页游标的位置（对响应的 JMESPath）；默认自动查找"
    ),
    "Parameter for the cursor": "传递游标的参数",
    "Parameter for the page number": "传递页码的参数",
    "Number of the first page": "第一页的编号",
    "Parameter for the offset; its value in the address is the start": "传递偏移量的参数；地址中已有的值作为起点",
    "Parameter for the page size": "传递每页条数的参数",
    "Number of items per page": "每页的条目数",
    "Maximum number of pages per collection": "每次采集最多请求的页数",
    "Parameter for the time of the newest stored item": "传递已保存的最新时间的参数",
    "Format of that time": "该时间的格式",
    "Header for the credential's secret: X-Api-Key, Authorization: Token": (
        "携带凭据机密的请求头：X-Api-Key、Authorization: Token"
    ),
    "Additional headers, as an object; no secrets": "其他请求头（对象形式）；不得包含机密",
} | {f"{what}{_IN_ITEM[0]}": f"{chinese}{_IN_ITEM[1]}" for what, chinese in _PARTS.values()}
DEFAULTS: SettingValues = {field.name: field.default for field in FIELDS}


def settled(settings: SettingValues) -> SettingValues:
    """Returns all settings of a source: its own, then those of its preset, then the defaults."""
    own = {name: value for name, value in settings.items() if value is not None}
    return DEFAULTS | PRESETS.get(own.get("preset", ""), {}) | own
