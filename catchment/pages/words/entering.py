"""The way in, and failures."""

from __future__ import annotations

WORDS = {
    "way_in_title": ("Come in by the link", "请通过链接进入"),
    "way_in_text": (
        "catchment prints a link when it starts. Open that link in this browser; it lets you in, and you"
        " stay in for 30 days.",
        "catchment 启动时会打印一个链接。用本浏览器打开它即可进入，30 天内无需再次登录。",
    ),
    "way_in_wrong": (
        "This link is from an earlier start, or is not whole. Use the one that was printed last.",
        "此链接来自之前的启动，或者不完整。请使用最近一次打印的链接。",
    ),
    "way_in_where": (
        "It stands in the terminal where it was started, or in the log of the service. Starting it again"
        " prints a new one:",
        "链接在启动它的终端或服务日志中。重新启动会打印新的链接：",
    ),
    "failure_title": ("This did not work", "没有成功"),
    "failure_missing": ("There is no such page", "没有这个页面"),
    "failure_missing_why": (
        "The address is not whole, or what was there is no longer kept.",
        "地址不完整，或者那里的内容已不再保存。",
    ),
    "failure_id": ("Number for the log: {id}", "日志编号：{id}"),
    "failure_back": ("Back to the overview", "返回概览"),
    "way_in_key": ("Or by a key of the API", "或使用 API 密钥"),
    "way_in_go": ("Come in", "进入"),
    "way_in_key_wrong": ("This key is not known here.", "此密钥无效。"),
}
