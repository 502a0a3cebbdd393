"""Texts of posts: English and Chinese, harmless and hostile. Pure.

A text has two forms: what a parser should extract (title and words), and the HTML that a site would send for it.
"""

from __future__ import annotations

from html import escape
from random import Random

from catchment.model import Record
from catchment.playground.rng import chance_of

ENGLISH = tuple(
    """pilot harbor tractor museum pepper violin comet bakery ledger saddle turbine glacier pencil orchard signal carpet
    beacon cattle puzzle magnet ferry cabin thunder walnut compass barrel canvas lighthouse meadow anchor tunnel parade
    rocket sparrow blanket copper gravel mustard velvet whistle builds carries forgets repairs follows measures paints
    counts borrows explains quietly rarely twice northward slowly green narrow ancient hollow bright stubborn patient
    near beyond without against under because although while""".split()  # noqa: SIM905 — words read better than lists
)
CHINESE = tuple(
    """茶馆 渡船 石桥 竹林 风筝 陶罐 麦田 星图 铁匠 棉布 驿站 灯芯 海图 雪线 药铺 古琴 砚台 果酱 齿轮 罗盘 集邮
    屋檐 渔网 沙丘 松针 水车 书签 邮差 木匠 候鸟 修理 丈量 记得 忘记 借来 寄往 描画 计算 守着 经过 缓缓 悄悄
    一再 从前 明亮 狭长 古老 倔强 耐心 附近 之外 底下 因为 虽然""".split()  # noqa: SIM905
)
SENTENCES = 500

# None of it may run, load or be visible; none of it leaves text behind. `]]>` would end a CDATA section.
HOSTILE = (
    "<script>document.title='owned'</script>",
    "<style>body{display:none}</style>",
    '<img src="x.png" onerror="alert(1)">',
    '<iframe srcdoc="&lt;script&gt;alert(1)&lt;/script&gt;"></iframe>',
    "<!-- ]]> <![CDATA[ --><script>/* ]]> */</script>",
    '<svg onload="alert(1)"><title>x</title></svg>',
)
# Text that looks like markup but is not: it must arrive unchanged.
ODD = (
    "R&D",
    "a < b > c",
    "Tom & Jerry",
    "“quotes” — dashes…",
    "naïve café",
    "🦉🛶",
    "\u0645\u0631\u062d\u0628\u0627",
    "100 % & more",
)


class Words(Record, frozen=True):
    """The content of a post: title, visible text, and the HTML that contains it."""

    title: str
    text: str
    html: str


class Phrasebook:
    """Sentences of one seed, from which posts are built."""

    def __init__(self, seed: int) -> None:
        chance = chance_of(seed, "sentences")
        self.english = [" ".join(chance.choices(ENGLISH, k=6 + n % 9)).capitalize() + "." for n in range(SENTENCES)]
        self.chinese = ["".join(chance.choices(CHINESE, k=5 + n % 8)) + "。" for n in range(SENTENCES)]

    def words(self, chance: Random, language: str, hostile_share: float) -> Words:
        sentences, draw = self.chinese if language == "zh" else self.english, chance.random
        title = sentences[int(draw() * SENTENCES)][:-1][:80].strip()
        paragraphs = [
            " ".join([sentences[int(draw() * SENTENCES)] for _ in range(_one_to_four(chance))])
            for _ in range(_one_to_four(chance))
        ]
        # Sentences need no escaping: only what is added may look like markup.
        marked_up = [f"<p>{words}</p>" for words in paragraphs]
        if draw() < 0.1:
            odd = ODD[int(draw() * len(ODD))]
            title, paragraphs[-1] = f"{title} {odd}", f"{paragraphs[-1]} {odd}"
            marked_up[-1] = f"<p>{escape(paragraphs[-1])}</p>"
        if draw() < hostile_share:
            hostile = HOSTILE[int(draw() * len(HOSTILE))]
            marked_up[int(draw() * len(marked_up))] += hostile
        return Words(title, "\n\n".join(paragraphs), "".join(marked_up))

    def edited(self, chance: Random, words: Words, language: str) -> Words:
        """The same post after an edit: a longer title, or one more line."""
        sentence = (self.chinese if language == "zh" else self.english)[int(chance.random() * SENTENCES)]
        if chance.random() < 0.2:
            return Words(f"{words.title} · {sentence[:20].strip()}", words.text, words.html)
        mark = "更新：" if language == "zh" else "Update: "
        added = f"{mark}{sentence}"
        return Words(words.title, f"{words.text}\n\n{added}", f"{words.html}<p>{escape(added)}</p>")


def _one_to_four(chance: Random) -> int:
    """What `randint(1, 4)` gives, in a third of its time: worlds of many thousands of posts are made of it."""
    while (number := chance.getrandbits(3)) >= 4:
        pass
    return number + 1
