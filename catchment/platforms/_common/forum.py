"""Settings that the boards of every forum have."""

from __future__ import annotations

from typing import Any

from catchment.model import Field


def _rate(value: Any) -> float:
    try:
        rate = float(value)
    except (TypeError, ValueError):
        raise ValueError("a number above 0, at most 1") from None
    if not 0.01 <= rate <= 1:
        raise ValueError("from 0.01 to 1")
    return rate


WINDOW_DAYS = Field(
    "window_days", "How many days of threads are read, today included", default=3, minimum=1, maximum=100_000
)
PAGES_PER_RUN = Field(
    "pages_per_run", "How many pages of a thread one run reads at most", default=5, minimum=1, maximum=1_000
)
REQUESTS_PER_SECOND = Field(
    "requests_per_second", "How many requests per second the board gets at most", default=1.0, check=_rate
)
FORUM_CHINESE = {
    WINDOW_DAYS.what: "读取多少天内的主题（含今天）",
    PAGES_PER_RUN.what: "每次运行每个主题最多读取的页数",
    REQUESTS_PER_SECOND.what: "该版面每秒最多请求数",
}
"""Chinese for the texts above, for a platform's `CHINESE`."""
