"""What the pages say, in English and in Chinese; how they count and tell time."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta

from catchment.clock import EPOCH

LANGUAGES = {"en": "English", "zh": "中文"}

WORDS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "title": "Overview",
        "well": "All is well",
        "look_one": "One thing needs a look",
        "look_many": "{count} things need a look",
        "empty": "Ready. Nothing is followed yet",
        "idle": "This process serves only; it does not collect.",
        "summary": "What you follow is visited on time, and what it says is kept.",
        "look_summary": "The rest goes on as usual; what failed is tried again by itself.",
        "demo": "A demonstration: what is followed here is made up, time runs {rate} times as fast, and this page "
        "renews itself. There it is {time}.",
        "figures": "In figures",
        "sources": "Sources",
        "active": "{count} active",
        "paused": "{count} paused",
        "retired": "{count} retired",
        "items": "Items kept",
        "items_note": "with every edit",
        "new": "New",
        "visits": "Visits",
        "day_note": "in the last 24 hours",
        "visits_note": "{errors} failed, last 24 hours",
        "gaps": "Open gaps",
        "gaps_none": "nothing known to be missing",
        "gaps_some": "see below",
        "latest": "Latest",
        "latest_none": "Nothing has come in yet. A new source is visited within a minute.",
        "untitled": "(no title)",
        "edited_one": "edited",
        "edited_many": "edited {count} times",
        "attention": "Needs a look",
        "alerts": "Alerts",
        "failing": "Failing sources",
        "failing_times_one": "failed once",
        "failing_times_many": "failed {count} times in a row",
        "tried": "tried {when}",
        "more": "and {count} more",
        "gap_known": "known gap",
        "gap_possible": "possible gap",
        "gap_span": "{start} – {end}",
        "recovered": "Back to normal",
        "recovered_tag": "recovered",
        "recovered_after": "after {span}",
        "jobs": "Work",
        "job": "Job",
        "last_run": "Last run",
        "next_run": "Next",
        "never": "not yet",
        "off": "off",
        "late": "late",
        "job_failed": "failed",
        "start_title": "Follow your first feed",
        "start_text": "In a terminal, on this machine:",
        "start_then": "It is visited within a minute, and this page fills up. A site’s own address will do, too: "
        "its feed is found. Other kinds, and all that can be set:",
        "start_dozen": "Or begin with a dozen that are worth a look, in English and Chinese:",
        "footer_api": "API",
        "footer_health": "Health",
        "way_in_title": "Come in by the link",
        "way_in_text": "catchment prints a link when it starts. Open that link in this browser; it lets you in, and "
        "you stay in for 30 days.",
        "way_in_wrong": "This link is from an earlier start, or is not whole. Use the one that was printed last.",
        "way_in_where": "It stands in the terminal where it was started, or in the log of the service. Starting it "
        "again prints a new one:",
        "failure_title": "This did not work",
        "failure_missing": "There is no such page",
        "failure_id": "Number for the log: {id}",
        "failure_back": "Back to the overview",
        "just_now": "just now",
        "ago": "{span} ago",
        "in": "in {span}",
        "due_now": "now",
        "seconds": "{count} s",
        "minutes": "{count} min",
        "hours": "{count} h",
        "days": "{count} d",
        "job:collect-due": "Visit what is due",
        "job:look-again": "Look again at older items",
        "job:index-items": "Index what came",
        "job:run-watches": "Hold what is new against the watches",
        "job:deliver-events": "Bring events to their listeners",
        "job:recover-leases": "Free stale claims",
        "job:notice-silence": "Notice sources gone silent",
        "job:clear-old": "Clear records past their time",
    },
    "zh": {
        "title": "概览",
        "well": "一切正常",
        "look_one": "有 1 件事需要查看",
        "look_many": "有 {count} 件事需要查看",
        "empty": "已就绪，尚未关注任何来源",
        "idle": "本进程只提供服务，不负责采集。",
        "summary": "所关注的来源按时访问，内容全部保存。",
        "look_summary": "其余照常运行；失败的会自动重试。",
        "demo": "演示：这里关注的来源都是虚构的，时间以 {rate} 倍速流逝，页面会自动刷新。那里现在是 {time}。",
        "figures": "数字",
        "sources": "来源",
        "active": "{count} 活跃",
        "paused": "{count} 暂停",
        "retired": "{count} 停用",
        "items": "已保存条目",
        "items_note": "含全部修改历史",
        "new": "新增",
        "visits": "访问",
        "day_note": "最近 24 小时",
        "visits_note": "24 小时内失败 {errors} 次",
        "gaps": "未补缺口",
        "gaps_none": "没有已知的缺失",
        "gaps_some": "见下方",
        "latest": "最新条目",
        "latest_none": "还没有内容。新来源会在一分钟内首次访问。",
        "untitled": "（无标题）",
        "edited_one": "已修改",
        "edited_many": "已修改 {count} 次",
        "attention": "需要查看",
        "alerts": "告警",
        "failing": "失败的来源",
        "failing_times_one": "失败 1 次",
        "failing_times_many": "连续失败 {count} 次",
        "tried": "{when}尝试过",
        "more": "另有 {count} 个",
        "gap_known": "确定的缺口",
        "gap_possible": "可能的缺口",
        "gap_span": "{start} – {end}",
        "recovered": "已恢复正常",
        "recovered_tag": "已恢复",
        "recovered_after": "历时 {span}",
        "jobs": "后台工作",
        "job": "任务",
        "last_run": "上次运行",
        "next_run": "下次",
        "never": "尚未运行",
        "off": "已关闭",
        "late": "延迟",
        "job_failed": "失败",
        "start_title": "关注第一个订阅源",
        "start_text": "在本机终端中运行：",
        "start_then": "一分钟内就会首次访问，本页随之出现内容。直接给网站地址也可以，会自动找到它的订阅源。"
        "其他类型和全部选项：",
        "start_dozen": "也可以先关注一组精选的中英文来源：",
        "footer_api": "接口",
        "footer_health": "健康状况",
        "way_in_title": "请通过链接进入",
        "way_in_text": "catchment 启动时会打印一个链接。用本浏览器打开它即可进入，30 天内无需再次登录。",
        "way_in_wrong": "此链接来自之前的启动，或者不完整。请使用最近一次打印的链接。",
        "way_in_where": "链接在启动它的终端或服务日志中。重新启动会打印新的链接：",
        "failure_title": "没有成功",
        "failure_missing": "没有这个页面",
        "failure_id": "日志编号：{id}",
        "failure_back": "返回概览",
        "just_now": "刚刚",
        "ago": "{span}前",
        "in": "{span}后",
        "due_now": "即将",
        "seconds": "{count} 秒",
        "minutes": "{count} 分钟",
        "hours": "{count} 小时",
        "days": "{count} 天",
        "job:collect-due": "访问到期的来源",
        "job:look-again": "再次查看较早的内容",
        "job:index-items": "为新内容建立索引",
        "job:run-watches": "用关注规则比对新内容",
        "job:deliver-events": "向订阅方投递事件",
        "job:recover-leases": "释放失效的占用",
        "job:notice-silence": "发现沉默的来源",
        "job:clear-old": "清理过期记录",
    },
}

# Largest first; a span is told in the largest unit that fits at least once.
_UNITS = (("days", 86_400), ("hours", 3_600), ("minutes", 60), ("seconds", 1))
_ALMOST_NOW = timedelta(seconds=5)
_LONG_AGO = timedelta(days=14)


def language(asked: str | None, accepted: str | None) -> str:
    """The language that was asked for by name, else the browser's favourite of those we speak, else English."""
    if asked in LANGUAGES:
        return asked
    wishes = [_wish(part) for part in (accepted or "")[:1000].split(",")]
    ours = [(weight, name) for weight, name in wishes if name in LANGUAGES and weight > 0]
    # The first of the heaviest: browsers list what they like best first.
    return max(ours, key=lambda wish: wish[0])[1] if ours else "en"


def _wish(part: str) -> tuple[float, str]:
    """Weight and language of one part of an Accept-Language header: `zh-CN;q=0.8`."""
    name, _, parameter = part.strip().partition(";")
    match = re.fullmatch(r"\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*", parameter)
    weight = float(match[1]) if match else 0.0 if parameter else 1.0
    return weight, name.split("-")[0].lower()


class Speech:
    """One language, spoken at one moment."""

    def __init__(self, language: str, now: datetime = EPOCH) -> None:
        self.language, self._words, self._now = language, WORDS[language], now

    def __call__(self, name: str, **values: object) -> str:
        return self._words[name].format(**values)

    def counted(self, name: str, count: int) -> str:
        return self(f"{name}_one" if count == 1 else f"{name}_many", count=self.number(count))

    def job(self, name: str) -> str:
        return self._words.get(f"job:{name}", name)

    @staticmethod
    def number(count: int) -> str:
        return f"{count:,}"

    @staticmethod
    def rate(rate: float) -> str:
        return f"{rate:g}"

    def now(self) -> str:
        """2026-02-25 10:30 UTC"""
        return f"{self.day_and_time(self._now.isoformat())} UTC"

    def between(self, start: str, end: str) -> str:
        return self._span(max(datetime.fromisoformat(end) - datetime.fromisoformat(start), timedelta(seconds=1)))

    def when(self, at: str | None) -> str:
        """A moment as people say it: 5 min ago, in 2 h; a date if it is long past."""
        if at is None:
            return self("never")
        distance = datetime.fromisoformat(at) - self._now
        if abs(distance) < _ALMOST_NOW:
            return self("due_now" if distance > timedelta() else "just_now")
        if -distance > _LONG_AGO:
            return at[:10]
        return self("in" if distance > timedelta() else "ago", span=self._span(abs(distance)))

    def next(self, at: str | None) -> str:
        """When something comes next; what is due already comes now."""
        return self("due_now") if at is None or datetime.fromisoformat(at) <= self._now else self.when(at)

    def _span(self, length: timedelta) -> str:
        seconds = int(length.total_seconds())
        unit, size = next((unit, size) for unit, size in _UNITS if seconds >= size)
        return self(unit, count=seconds // size)

    @staticmethod
    def day_and_time(at: str) -> str:
        """2026-02-25 10:30, in UTC."""
        return at[:16].replace("T", " ")
