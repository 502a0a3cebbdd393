"""Finding words in a text, by the rules of search: whole case-folded words; Chinese, Japanese and Korean anywhere."""

from __future__ import annotations

import re

_CJK = (
    "\u1100-\u11ff\u2e80-\u303f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_PIECE = re.compile(rf"([{_CJK}]+)|((?:(?![{_CJK}])\w)+)")


class Text:
    """A text that is looked at word by word, split only once."""

    def __init__(self, text: str) -> None:
        self._folded = text.casefold()
        self._words = {match[2] for match in _PIECE.finditer(self._folded) if match[2]}

    def has(self, word: str) -> bool:
        return all(
            match[1] in self._folded if match[1] else match[2] in self._words
            for match in _PIECE.finditer(word.casefold())
        )


def is_searchable(word: str) -> bool:
    return _PIECE.search(word.casefold()) is not None
