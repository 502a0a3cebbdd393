"""What is running at this moment."""

from __future__ import annotations

WORDS = {
    "live_title": ("Right now", "此刻"),
    "live_none": ("No visit is under way.", "没有正在进行的访问。"),
    "live_visits_one": ("{count} visit is under way", "{count} 个访问正在进行"),
    "live_visits_many": ("{count} visits are under way", "{count} 个访问正在进行"),
    "live_since": ("began {when}", "{when}开始"),
    "live_new_one": ("{count} new item", "新增 {count} 条"),
    "live_new_many": ("{count} new items", "新增 {count} 条"),
    "live_results": ("Ended last", "最近结束"),
}
