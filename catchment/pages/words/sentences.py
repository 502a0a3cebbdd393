"""Sentences that other parts of the product have written down in English (why a tier, what was noted of a visit, what
an alert tells), in Chinese. They are known by their form; one whose form is not known here is shown as it is.

What stands in braces comes from the sentence: a number, a name, another sentence.
"""

from __future__ import annotations

import re
from functools import cache

from catchment.pages.words.foreign import FOREIGN

FORMS = {
    # spans
    "{number} min": "{number} 分钟",
    "{number} h": "{number} 小时",
    "one minute": "一分钟",
    "{number} minutes": "{number} 分钟",
    # tiers
    "{word}: every {span} rather than {usual}, because the platform shows no more than the newest {number}": (
        "{word}：每 {span}一次而非每 {usual}，因为平台只显示最新的 {number} 条"
    ),
    "{word}: every {span}": "{word}：每 {span}一次",
    # visits
    "{number} posts cached, none stored": "缓存了 {number} 条，未保存",
    "second looks at {number} items": "再次查看了 {number} 条内容",
    "{number} of them are put off": "其中 {number} 条推迟",
    "more about {number} items is still to be asked for": "还有 {number} 条内容的更多信息待获取",
    "of what was asked about items, this could not be had: {why}": "所请求的条目信息中，未能取得：{why}",
    "{number} items that were listed are left to the next visit": "列出的 {number} 条留待下次访问",
    "{number} of the items that were listed could not be had: {why}": "列出的条目中有 {number} 条未能取得：{why}",
    "left to the next round: {why}": "留待下一轮：{why}",
    "no platform is installed for kind {word}": "没有安装支持 {word} 类型的平台",
    "its pages lead back to one that was read": "分页又回到了已读过的页面",
    "not read beyond {number} pages (max_pages)": "最多读取 {number} 页（max_pages）",
    "`items` finds nothing in the answer": "`items` 在响应中没有找到内容",
    "a page came empty where more was announced: it is asked again": "有一页本应有内容却为空，将再次请求",
    # feeds that had to be forgiven something
    "not well-formed: read by the most patient reader": "格式有误，已用最宽容的方式读取",
    "not well-formed": "格式有误",
    "breaks off before its end": "内容未完即中断",
    "control characters": "含控制字符",
    "control characters or broken escapes": "含控制字符或错误的转义",
    "declared entities": "含自定义实体",
    "junk before the feed": "订阅源之前有多余内容",
    "junk after the feed": "订阅源之后有多余内容",
    "wrongly encoded characters": "字符编码有误",
    "bare ampersands or HTML entities": "含未转义的 & 或 HTML 实体",
    "attributes without quotes": "属性缺少引号",
    # alerts: calls and budgets
    "{word}: {number} calls in {span}, of {all} that it allows — follow less of it, less often, or add a credential": (
        "{word}：{span}内请求 {number} 次，允许 {all} 次 — 请减少关注、调长间隔，或添加凭据"
    ),
    "{word}: {needs} of {all} requests a minute: {late} — follow less of it, less often, or add a credential; "
    "`catchment plan` shows who is late": (
        "{word}：{needs}，每分钟允许 {all} 次：{late} — 请减少关注、调长间隔，或添加凭据；"
        "`catchment plan` 显示哪些会延迟"
    ),
    "{number} sources need {needed}": "{number} 个来源每分钟需要 {needed} 次请求",
    "1 source needs {needed}": "1 个来源每分钟需要 {needed} 次请求",
    "{number} will be late and {never} will not be visited at all": "{number} 个将延迟，{never} 个完全无法访问",
    "{number} will be late": "{number} 个将延迟",
    "{number} will not be visited at all": "{number} 个完全无法访问",
    # alerts: how it runs
    "the hot store answered {number} of {all} reads in {minutes} minutes, less than {share} — is Redis away, is "
    "HOT_CACHE_TTL_HOURS too short, or is collecting late?": (
        "热存储在 {minutes} 分钟内的 {all} 次读取中命中 {number} 次，低于 {share} — Redis 是否不可用、"
        "HOT_CACHE_TTL_HOURS 是否太短，或采集是否延迟？"
    ),
    "Redis is away, the database is used: {why} — see that it runs, or unset CATCHMENT_REDIS_URL": (
        "Redis 不可用，改用数据库：{why} — 请确认它在运行，或取消 CATCHMENT_REDIS_URL"
    ),
    "{word}: {number} of {all} visits in {minutes} minutes failed{most} — `catchment status` shows which": (
        "{word}：{minutes} 分钟内 {all} 次访问中有 {number} 次失败{most} — `catchment status` 显示详情"
    ),
    ", most often with {code}": "，最常见的是 {code}",
    "no visit went well for {minutes} minutes, and {number} sources are due, the first of them since {at} — is the "
    "network there, is somebody refusing us?": (
        "{minutes} 分钟内没有成功的访问，{number} 个来源到期，最早的自 {at} — 网络是否正常？是否被拒绝？"
    ),
    "{word}: {number} of {all} sources have been visited, and none for the first time since {at} — is the budget used "
    "up?": "{word}：{all} 个来源中已访问 {number} 个，自 {at} 起没有新的首次访问 — 额度是否用完？",
    # alerts: silence
    "{word} is silent: {name} (source {id}), which is its busiest, should have shown something new by {at}, and no "
    "other source of it has since — it is down, or blocks us": (
        "{word} 没有新内容：最活跃的 {name}（来源 {id}）本应在 {at} 前出现新内容，其他来源也没有"
        " — 平台故障，或屏蔽了我们"
    ),
    "nothing new from any of the {number} sources of {word} — is it down, or blocking us?": (
        "{word} 的 {number} 个来源都没有新内容 — 平台是否故障，或屏蔽了我们？"
    ),
    "{sentence} — look at it in a browser": "{sentence} — 请在浏览器中查看",
    "{name} answers, but has shown nothing new since it should have ({at} by its own rhythm){more}": (
        "{name} 有响应，但按其规律 {at} 就该有新内容，至今没有{more}"
    ),
    "; {word} itself is well ({other} shows new things), so nobody posted, or it has moved": (
        "；{word} 本身正常（{other} 有新内容），可能没有人发帖，或已搬迁"
    ),
    # alerts: credentials
    "no credential of {word} is usable: {each}; a person must act: `catchment credentials list` shows how they stand": (
        "{word} 没有可用的凭据：{each}；需要人工处理：`catchment credentials list` 显示其状态"
    ),
    "no credential of {word} is usable: {each}; the next one is usable from {at}": (
        "{word} 没有可用的凭据：{each}；下一个可用时间为 {at}"
    ),
    "credential {name} of {word} is {standing}; {helps}": "{word} 的凭据 {name} 目前为 {standing}；{helps}",
    "credential {name} of {word} {verb} on {at}; {helps}": "{word} 的凭据 {name} {verb}（{at}）；{helps}",
    "has expired": "已过期",
    "expires": "即将过期",
    "`catchment credentials test {name}` tells whether it works again; otherwise {helps}": (
        "`catchment credentials test {name}` 可检查是否恢复；否则{helps}"
    ),
    "correct the settings that it comes from": "请更正其来源的设置",
    "give a new one: {command}": "请更换：{command}",
    # alerts: listeners
    "{name} is switched off: {why} — resume it, or remove it": "{name} 已关闭：{why} — 请恢复或移除",
    "the receiver answered 410: it wants no more": "接收方返回 410，不再接收",
    "{name} has not taken its events {number} times in a row{more}: {why}": (
        "{name} 连续 {number} 次未接收事件{more}：{why}"
    ),
    "; what was too old is given up (events: {number})": "；过旧的已放弃（{number} 个事件）",
}
_NUMBERS = ("number", "all", "minutes", "never", "needed", "id")
_MAY_BE_EMPTY = ("more", "most")
_PLACE = re.compile(r"\\\{(\w+)\\\}")


def in_chinese(sentence: str) -> str:
    """The sentence in Chinese, and what stands in it; as it is, if it has no form of ours."""
    return known_in_chinese(sentence) or sentence


def known_in_chinese(sentence: str) -> str | None:
    if sentence in FOREIGN:
        return FOREIGN[sentence]
    for pattern, words in _patterns():
        if found := pattern.fullmatch(sentence):
            return words.format(**{name: in_chinese(value) for name, value in found.groupdict().items()})
    return None


@cache
def _patterns() -> list[tuple[re.Pattern[str], str]]:
    """In the order of the forms: of two that fit, the one that says more stands first."""
    return [(re.compile(_pattern(form), re.DOTALL), words) for form, words in FORMS.items()]


def _pattern(form: str) -> str:
    seen: set[str] = set()

    def place(found: re.Match[str]) -> str:
        name = found[1]
        if name in seen:
            return f"(?P={name})"
        seen.add(name)
        return f"(?P<{name}>{_sort(name)})"

    return _PLACE.sub(place, re.escape(form))


def _sort(name: str) -> str:
    """What may stand in that place."""
    if name in _NUMBERS:
        return r"[\d.,]+"
    if name in _MAY_BE_EMPTY:
        return ".*?"
    return r"\S+?" if name == "word" else ".+?"
