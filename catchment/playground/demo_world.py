"""The world of the demo: simulated feeds, communities and forums, their events, and their visit intervals.

What must be visible within the first minute is scripted by the world's time; the rest is random with a seed. The world
starts on the last Tuesday: shifted by whole weeks it is the same world, so every demo is the same.
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from functools import cached_property
from html import escape
from itertools import product
from random import Random
from typing import Any

from catchment.model import Record
from catchment.playground.faults import Cue, FaultPlan
from catchment.playground.phrases import SENTENCES, Phrasebook, Words
from catchment.playground.rng import chance_of
from catchment.playground.sites.reddit.names import community
from catchment.playground.world import Habits, Place, World

SEED = 11
DAYS = 3.0
"""How long the world lasts: 72 minutes at the usual rate."""
HABITS = Habits(
    edited=0.3,
    removed=0.02,
    late=0.06,
    # An entry dated in the future stays visible while all others pass, and so hides a gap.
    future=0,
    bursts_a_day=0.4,
    silences_a_day=0,
    # By script only.
    moved=0,
    gone=0,
    new_ids=0,
)
FAULT_RATE = 0.01
FEED = "feed"
_TUESDAY = 1
_ZONES = {"en": 0, "zh": 8, "both": 2}


class Role(Record, frozen=True):
    """One place of the demo: its name, language, posting rate and visit interval."""

    name: str
    language: str
    posts_a_day: float
    window: int
    interval_minutes: int
    form: str = FEED
    """A feed, or one of the world's other forms."""
    settings: dict[str, Any] = {}
    """Of the source for this place."""
    fault: str | None = None
    """The fault of every request …"""
    from_minute: float = 0
    to_minute: float = 0
    """… between these minutes of the world."""
    moves_minute: float | None = None
    gone_minute: float | None = None


ROLES = (
    # The story of the first minutes. It fails for so long that an alert opens; and so much is posted meanwhile that its
    # window has moved on when it is back: a gap.
    Role("City Desk Wire", "en", 1000, 10, 2, fault="server_error", from_minute=8, to_minute=25),
    # Posts more than its window holds between two visits.
    Role("Auction Ticker", "en", 900, 10, 18),
    Role("Old Tram Letters", "en", 60, 20, 3, moves_minute=6),
    Role("Paper Boats", "en", 40, 10, 4, gone_minute=30),
    Role("Harbour Gazette", "en", 180, 20, 3),
    # Fails for a short while, and nothing is missed. On another site than the first: five places share one, and if two
    # fail together, the site is blamed.
    Role("渡口来信", "zh", 100, 15, 2, fault="reset", from_minute=4, to_minute=12),
    # The others: every second one of them posts something.
    Role("竹林周报", "zh", 180, 20, 3),
    Role("Observatory Log", "en", 90, 25, 5),
    Role("老城观察", "zh", 150, 20, 4),
    Role("Repair Café", "en", 80, 15, 4),
    Role("茶馆夜话", "zh", 200, 25, 3),
    Role("Two Rivers 两河", "both", 120, 20, 5),
    Role("Night Train Notes", "en", 70, 20, 6),
    Role("星图笔记", "zh", 60, 15, 6),
    Role("Botanic Weekly", "en", 25, 10, 8),
    Role("The Long Shelf", "en", 60, 30, 5),
    Role("修表匠日志", "zh", 40, 20, 7),
    Role("Slow Maps", "en", 30, 20, 9),
    Role("Pier 9 九号码头", "both", 110, 20, 4),
    Role("Weather Bench", "en", 180, 30, 3),
    Role("雪线气象", "zh", 160, 30, 3),
    Role("Field Recordings", "en", 30, 15, 10),
    Role("山里小学", "zh", 30, 10, 8),
    Role("Lamp & Ledger", "en", 50, 20, 6),
    Role("旧书摊", "zh", 70, 20, 5),
    Role("Walnut Workshop", "en", 40, 15, 7),
    Role("南方食物志", "zh", 90, 20, 5),
    Role("Tide Tables", "en", 110, 25, 4),
    Role("Kite Makers", "en", 20, 10, 12),
    Role("候鸟来信 Migrants", "both", 50, 15, 6),
    # Other platforms than feeds. Numbered after them, in this order: one form after the other.
    Role("Hacker News", "en", 150, 30, 6, form="hackernews"),
    Role("Boat Builders' Forum", "en", 120, 30, 4, form="discourse"),
    Role("NightFerries", "en", 900, 1000, 5, form="reddit", settings={"sort": "hot"}),
    Role("AskALighthouse", "en", 60, 1000, 6, form="reddit", settings={"sort": "new", "comments": True}),
    # Private for a while.
    Role("TownHallWhispers", "en", 90, 1000, 4, form="reddit", fault="private", from_minute=14, to_minute=32),
    Role("JiuShuTan", "zh", 120, 1000, 5, form="reddit", settings={"sort": "top", "time_filter": "day"}),
)


class Stage(World):
    """The world of the demo: its places have the roles above."""

    def __init__(self, start: datetime) -> None:
        forms = Counter(role.form for role in ROLES)
        super().__init__(SEED, start, forms.pop(FEED), DAYS, HABITS, others=forms)
        self.places = tuple(self._cast(place, role) for place, role in zip(self.places, ROLES, strict=True))

    def target(self, place: Place, address: str) -> tuple[str, str]:
        """The kind and the target of the source for a place at that address."""
        if place.form == "reddit":
            return "reddit", f"r/{community(place)}"
        if place.form == "hackernews":
            return "hackernews", "new"
        return ("discourse_forum" if place.form == "discourse" else "rss"), address

    @cached_property
    def phrasebook(self) -> Phrasebook:
        return Headlines(self.seed)

    def _cast(self, place: Place, role: Role) -> Place:
        return place.replace(
            name=role.name,
            language=role.language,
            pace=place.pace.replace(
                posts_a_day=role.posts_a_day,
                window=role.window,
                bursts_a_day=HABITS.bursts_a_day,
                # It is midday for most of them: nobody sleeps when the demo starts.
                is_office=False,
                zone_hours=_ZONES[role.language],
            ),
            moves_at=self._at(role.moves_minute),
            new_path=place.path.replace("/feeds/", "/new-home/") if role.moves_minute is not None else None,
            gone_at=self._at(role.gone_minute),
        )

    def _at(self, minute: float | None) -> datetime | None:
        return None if minute is None else self.start + timedelta(minutes=minute)

    def faults(self) -> FaultPlan:
        """The scripted faults, and now and then a random one."""
        script = [
            Cue(role.fault, _paths(place), from_at=self._at(role.from_minute), to_at=self._at(role.to_minute))
            for place, role in zip(self.places, ROLES, strict=True)
            if role.fault is not None
        ]
        return FaultPlan(self.seed, FAULT_RATE, script)


def _paths(place: Place) -> str:
    return f"/r/{community(place).lower()}/*" if place.form == "reddit" else place.path


def start_before(now: datetime) -> datetime:
    """The last Tuesday noon."""
    days = (now.weekday() - _TUESDAY) % 7 or 7
    return (now - timedelta(days=days)).replace(hour=12, minute=0, second=0, microsecond=0)


# ── phrases ───────────────────────────────────────────────────────────────────────────────────────────────────────

_ENGLISH = (
    (
        *("The harbour ferry", "The old observatory", "The village bakery", "The night train", "The town library"),
        *("The botanical garden", "The repair café", "The weather station", "A small museum", "The river lock"),
        *("The choir of the north pier", "A school in the hills", "The last tram depot", "The beekeepers' society"),
    ),
    (
        *(
            "opens its doors again",
            "publishes forty years of records",
            "asks for volunteers",
            "moves to the post office",
        ),
        *("wins the regional prize", "loses power for an hour", "finds a map from 1890", "starts a reading circle"),
        *(
            "counts more swifts than ever",
            "is looking for a new keeper",
            "answers its oldest letter",
            "repairs its clock",
        ),
    ),
    (
        *("", " after three quiet years", " on Sunday", " despite the storm", " for the first time since 1974"),
        *(" with help from the neighbours", " before the winter", ", and nobody knows why"),
    ),
)
_CHINESE = (
    (
        *(
            "港口渡轮",
            "老天文台",
            "夜班列车",
            "县图书馆",
            "植物园",
            "修理铺",
            "气象站",
            "河边茶馆",
            "旧书店",
            "山里小学",
        ),
        *("城南菜市", "电车总站", "养蜂人协会", "小博物馆"),
    ),
    (
        *(
            "重新开放",
            "公布四十年的记录",
            "招募志愿者",
            "搬进旧邮局",
            "停电一小时",
            "找到一张一八九〇年的地图",
            "办起读书会",
        ),
        *("修好了大钟", "迎来第一批候鸟", "换了新掌柜", "回复了最早的一封信", "拿下地区大奖"),
    ),
    ("", "，街坊都来帮忙", "，十年来头一回", "，风雨无阻", "，赶在入冬之前", "，原因至今不明", "，周日可以去看看"),
)
_CORRECTED = {"en": "Corrected: ", "zh": "更正："}
_UPDATE = {"en": "Update: ", "zh": "更新："}


class Headlines(Phrasebook):
    """Sentences that read like news of a small town."""

    def __init__(self, seed: int) -> None:
        chance = chance_of(seed, "headlines")
        self.english = [f"{''.join(parts)}." for parts in _drawn(chance, _ENGLISH, " ")]
        self.chinese = [f"{''.join(parts)}。" for parts in _drawn(chance, _CHINESE, "")]

    def edited(self, chance: Random, words: Words, language: str) -> Words:
        """The same post after an edit: half of the first edits change the title."""
        mark = _CORRECTED[language]
        if not words.title.startswith(mark) and chance.random() < 0.5:
            return words.replace(title=f"{mark}{words.title}")
        added = f"{_UPDATE[language]}{chance.choice(self.chinese if language == 'zh' else self.english)}"
        return words.replace(text=f"{words.text}\n\n{added}", html=f"{words.html}<p>{escape(added)}</p>")


def _drawn(chance: Random, parts: tuple[tuple[str, ...], ...], between: str) -> list[tuple[str, ...]]:
    whos, whats, hows = parts
    every = [(who, between, what, how) for who, what, how in product(whos, whats, hows)]
    return chance.sample(every, SENTENCES)
