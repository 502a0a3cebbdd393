"""What other parts of the product say in English, in Chinese: kinds and their settings, by their very words.

They are said once, where they are defined. A test fails for those of ours that are missing here.
"""

from __future__ import annotations

FOREIGN: dict[str, str] = {
    "A feed (RSS, Atom, RDF, JSON Feed), by its own address or its site's": (
        "订阅源（RSS、Atom、RDF、JSON Feed），可给出订阅地址或网站地址"
    ),
    "A feed that is a digest of other sources": "汇总其他来源的订阅源",
}
