"""The hot store: what is read most, ready to be shown, for a day."""

from __future__ import annotations

from catchment.hot.homes import Home
from catchment.hot.keeping import Hot, is_kept_hot, keeps_hot, open_hot

__all__ = ["Home", "Hot", "is_kept_hot", "keeps_hot", "open_hot"]
