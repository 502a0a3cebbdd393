"""The world: places and their posts on one seeded timeline, and the truth about them at any moment.

Pure and fast: no clock, no I/O. The same seed gives the same world; a place does not depend on how many there are, nor
its past on how long the world lasts. Everything happens at whole seconds, because most dates on the wire are no finer.

A post **exists** from when it was written or shown, whichever came first, until it is removed. It is **shown** through
its place's listing while it belongs to the newest `window` of those that appeared and are not removed.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from math import cos, exp
from random import Random

from catchment.model import Record
from catchment.playground.phrases import Phrasebook, Words
from catchment.playground.posting_rates import Pace, moments
from catchment.playground.rng import chance_of

PLACES_OF_A_SITE = 5
"""How many neighbours share one host."""
ENGLISH_NAMES = ("Gazette", "Notes", "Weekly", "Signals", "Workshop", "Almanac", "Dispatch", "Letters")
CHINESE_NAMES = ("周报", "随笔", "观察", "日志", "工坊", "来信", "见闻", "杂记")
AUTHORS = ("ada", "bo", "chen", "dita", "emeka", "fay", "guo", "hana", "ivo", "juno", "karim", "lin")
TAGS = ("tools", "travel", "music", "science", "食物", "城市", "读书", "天气")
FORMS = {"rss": 0.5, "atom": 0.3, "jsonfeed": 0.12, "rdf": 0.08}
LANGUAGES = {"en": 0.5, "zh": 0.3, "both": 0.2}
VALIDATORS = {("etag", "last-modified"): 0.6, ("etag",): 0.15, ("last-modified",): 0.1, (): 0.15}
ENDINGS = {"rss": "xml", "atom": "atom", "jsonfeed": "json", "rdf": "rdf"}
DATED_BY_ARRIVAL = {"json_api", "discourse", "nga", "x"}
"""Forms in which the server itself dates what arrives, whatever the post says."""
DATED_WHEN_WRITTEN = {"reddit"}
"""Forms in which the server dates what is written: a post that appears late is dated back, and none ahead."""
LIVELY = {"hackernews": 60.0, "json_api": 100.0, "nga": 80.0}
"""Forms that never sleep: the minimum of posts a day."""
CROWDED = {"reddit": 3_000.0}
"""Forms whose first place is a crowd: posts a day, and every few days more at once than can be seen."""
BURSTS_OF_A_CROWD = 0.3
REACHES = {"reddit": 1_000}
"""Forms whose listings all show this many, page by page."""
ZONES = (-8, -5, -5, 0, 1, 2, 8, 8)
WINDOWS = (10, 10, 15, 20, 20, 25, 30, 50)

# Posts a day are log-normal: most places post a few times a week, a wire more than a hundred times a day.
RATES, WIRE_RATES = (-0.6, 1.5), (4.9, 0.3)
LEAST_A_DAY, MOST_A_DAY = 0.02, 400.0
# Communities post more than any single author: a dozen a day in the median, thousands in the largest.
COMMUNITY_RATES, LARGE_RATES, MOST_IN_A_COMMUNITY = (2.5, 1.3), (8.0, 0.1), 3_500.0


class Habits(Record, frozen=True):
    """How often unusual things happen. Shares of posts, of places, or chances a day."""

    edited: float = 0.07
    reverted: float = 0.05
    """Of the edited: an edit that is reverted."""
    removed: float = 0.03
    restored: float = 0.35
    """Of the removed."""
    late: float = 0.03
    future: float = 0.006
    reposted: float = 0.02
    hostile: float = 0.04
    pictured: float = 0.15
    bursts_a_day: float = 0.005
    silences_a_day: float = 0.015
    wires: float = 0.02
    """Places that post a hundred times a day and more."""
    undated: float = 0.07
    """Of the places whose form allows it."""
    without_ids: float = 0.1
    """Of RSS places: no guid, so that the link has to serve."""
    by_arrival: float = 0.15
    """Places that list what appeared last first, whatever its date."""
    new_ids: float = 0.03
    moved: float = 0.03
    gone: float = 0.01
    old_charset: float = 0.2
    """Of Chinese RSS places: they still use GB2312."""
    expired_early: float = 0.2
    """Of tokens: refused long before the expiry that was announced."""


class Version(Record, frozen=True):
    """The content of a post from a moment on."""

    number: int
    from_at: datetime
    title: str
    text: str
    """The text, as a parser should extract it."""
    html: str


class Post(Record, frozen=True):
    """One post and its whole history."""

    id: str
    """The world's own name for it; on the wire it has another."""
    place: int
    number: int
    created_at: datetime
    """As the post itself says: later than `shown_from` in a few, which are dated in the future."""
    shown_from: datetime
    """When it appeared; later than `created_at` for late arrivals."""
    versions: tuple[Version, ...]
    author: str
    tags: tuple[str, ...]
    language: str
    picture: str | None = None
    removed_at: datetime | None = None
    restored_at: datetime | None = None
    repeats: str | None = None
    """The post whose text it repeats."""

    @property
    def began_at(self) -> datetime:
        return min(self.created_at, self.shown_from)

    def is_removed(self, at: datetime) -> bool:
        if self.removed_at is None or at < self.removed_at:
            return False
        return self.restored_at is None or at < self.restored_at

    def version(self, at: datetime) -> Version:
        """Its version at a moment; before it appeared, the first one."""
        said = [version for version in self.versions if version.from_at <= at]
        return said[-1] if said else self.versions[0]

    def changes(self) -> Iterator[datetime]:
        """The moments at which a listing may look different because of it."""
        yield self.shown_from
        yield from (version.from_at for version in self.versions[1:])
        yield from (at for at in (self.removed_at, self.restored_at) if at is not None)


Shown = tuple[tuple[Post, Version], ...]


class Place(Record, frozen=True):
    """Something that can be a source: a feed, a community, a user, a board. And its behaviour."""

    number: int
    name: str
    host: str
    path: str
    form: str
    language: str
    """en, zh, or both"""
    pace: Pace
    charset: str = "utf-8"
    """The name it gives to its encoding; gb2312 means what it means everywhere: the whole of gb18030."""
    is_dated: bool = True
    has_ids: bool = True
    is_plain: bool = False
    """Its texts are plain, without HTML."""
    is_by_arrival: bool = False
    validators: tuple[str, ...] = ("etag", "last-modified")
    """Those that it sends and honours; none: every request gets the whole listing."""
    is_weak: bool = False
    """Its ETags are marked as weak."""
    new_ids_at: datetime | None = None
    moves_at: datetime | None = None
    new_path: str | None = None
    gone_at: datetime | None = None

    @property
    def window(self) -> int:
        """How many entries its listing shows."""
        return self.pace.window

    def path_at(self, at: datetime) -> str:
        """Its actual path at a moment."""
        return self.new_path if self.new_path and self.moves_at and at >= self.moves_at else self.path


class Counters(Record, frozen=True):
    """The counters of a post."""

    score: int
    reply_count: int


class World:
    """A world, fully determined by the numbers given here."""

    def __init__(
        self,
        seed: int,
        start: datetime,
        places: int,
        days: float,
        habits: Habits | None = None,
        busy: float = 1.0,
        others: Mapping[str, int] | None = None,
        giant_pages: int = 0,
        most_a_day: float = MOST_A_DAY,
    ) -> None:
        """`places` feeds, and of the other forms as many as `others` says; these are numbered after the feeds.
        `giant_pages`: so many pages more than it has posts for does a thread of each board claim to have.
        `most_a_day`: no place has more posts a day; communities have their own limit."""
        self.seed, self.start, self.end = seed, start.replace(microsecond=0), start + timedelta(days=days)
        self.habits, self.busy, self.giant_pages = habits or Habits(), busy, giant_pages
        self.most_a_day = most_a_day
        feeds = tuple(self._place(number) for number in range(places))
        forms = [form for form, count in (others or {}).items() for _ in range(count)]
        self.places = feeds + tuple(
            self._other(number, form, is_first=form not in forms[: number - places])
            for number, form in enumerate(forms, places)
        )
        self.rhythms: Mapping[int, Sequence[int]] = {}
        """When places post, by number: seconds since 1970. Set before anybody asks; of the others, their pace tells."""
        self._timelines: dict[int, Timeline] = {}
        self._fames: dict[str, float] = {}

    def posts(self, place: Place) -> tuple[Post, ...]:
        """The whole timeline, in the order in which posts appeared; it starts before `start`."""
        return self.timeline(place).posts

    def shown(self, place: Place, at: datetime) -> Shown:
        """What its listing shows at a moment, in the order shown."""
        return self.timeline(place).shown(at)

    def existing(self, place: Place, at: datetime) -> tuple[Post, ...]:
        """What existed at a moment, whether it was shown or not."""
        return tuple(post for post in self.posts(place) if post.began_at <= at and not post.is_removed(at))

    def changed_at(self, place: Place, at: datetime) -> datetime:
        """When its listing last changed, or may have: between two changes it is the same."""
        return self.timeline(place).changed_at(at)

    def glimpses(self, place: Place, after: datetime, until: datetime) -> dict[str, list[int]]:
        """Everything that its listing showed at any moment in between, both ends included: versions by post id."""
        return self.timeline(place).glimpses(after, until)

    def counters(self, post: Post, at: datetime) -> Counters:
        """They grow quickly, then slowly; a score fluctuates, and so shrinks at times."""
        hours = max(0.0, (at - post.shown_from).total_seconds() / 3600)
        fame = self.fame(post)
        grown = 1 - exp(-hours / 8)
        return Counters(round(fame * (grown + 0.1 * cos(hours))), int(fame * grown / 3))

    def fame(self, post: Post) -> float:
        """The score that it reaches in the end."""
        fame = self._fames.get(post.id)
        if fame is None:
            # Cached: rankings need that of every post repeatedly, and seeding a generator is slow.
            fame = self._fames[post.id] = exp(chance_of(self.seed, "fame", post.id).gauss(2, 1.5))
        return fame

    def timeline(self, place: Place) -> Timeline:
        """Everything shown of a place, from its first moment to its last."""
        timeline = self._timelines.get(place.number)
        if timeline is None:
            posts = _Story(self, place).posts()
            timeline = self._timelines[place.number] = Timeline(place, posts)
        return timeline

    @cached_property
    def phrasebook(self) -> Phrasebook:
        return Phrasebook(self.seed)

    def _place(self, number: int) -> Place:
        chance, habits = chance_of(self.seed, "place", number), self.habits
        form = chance.choices(list(FORMS), list(FORMS.values()))[0]
        language = chance.choices(list(LANGUAGES), list(LANGUAGES.values()))[0]
        is_dated = form == "atom" or chance.random() >= habits.undated
        has_old_charset = form == "rss" and language == "zh" and chance.random() < habits.old_charset
        place = Place(
            number=number,
            name=_name(chance, language, number),
            host=f"site{number // PLACES_OF_A_SITE}",
            path=f"/feeds/{number}.{ENDINGS[form]}",
            form=form,
            language=language,
            pace=self._pace(chance),
            charset="gb2312" if has_old_charset else "utf-8",
            is_dated=is_dated,
            has_ids=form != "rss" or chance.random() >= habits.without_ids,
            is_plain=chance.random() < 0.15,
            is_by_arrival=not is_dated or chance.random() < habits.by_arrival,
            validators=chance.choices(list(VALIDATORS), list(VALIDATORS.values()))[0],
            is_weak=chance.random() < 0.3,
        )
        return self._with_event(place, chance)

    def _other(self, number: int, form: str, is_first: bool) -> Place:
        """A place of another form than feeds: its site module knows its behaviour and its paths."""
        chance = chance_of(self.seed, "place", number)
        language = chance.choices(list(LANGUAGES), list(LANGUAGES.values()))[0]
        name = _name(chance, language, number)
        pace = self._community_pace(chance, form, is_first) if form in REACHES else self._pace(chance)
        return Place(
            number=number,
            name=name,
            host=f"{form}{number}",
            path=f"/{form}/{number}",
            form=form,
            language=language,
            pace=pace.replace(posts_a_day=max(pace.posts_a_day, LIVELY.get(form, 0.0))),
            is_by_arrival=form in DATED_BY_ARRIVAL,
            validators=(),
        )

    def _pace(self, chance: Random) -> Pace:
        is_wire = chance.random() < self.habits.wires
        rate = exp(chance.gauss(*WIRE_RATES) if is_wire else chance.gauss(*RATES)) * self.busy
        return Pace(
            posts_a_day=min(self.most_a_day, max(LEAST_A_DAY, rate)),
            is_office=chance.random() < 0.5,
            zone_hours=chance.choice(ZONES),
            window=chance.choice(WINDOWS),
            bursts_a_day=self.habits.bursts_a_day,
            silences_a_day=self.habits.silences_a_day,
        )

    def _community_pace(self, chance: Random, form: str, is_first: bool) -> Pace:
        is_large = chance.random() < self.habits.wires
        rate = exp(chance.gauss(*(LARGE_RATES if is_large else COMMUNITY_RATES))) * self.busy
        is_crowd = is_first and form in CROWDED
        return self._pace(chance).replace(
            posts_a_day=CROWDED[form] if is_crowd else min(MOST_IN_A_COMMUNITY, rate),
            is_office=False,
            window=REACHES[form],
            bursts_a_day=BURSTS_OF_A_CROWD if is_crowd else self.habits.bursts_a_day,
        )

    def _with_event(self, place: Place, chance: Random) -> Place:
        """At most one major event in a place's life, in its first days: it moves, it disappears, or its ids change."""
        at = self.start + timedelta(seconds=int(chance.uniform(0.5, 5) * 86_400))
        habits, draw = self.habits, chance.random()
        if draw < habits.moved:
            return place.replace(moves_at=at, new_path=place.path.replace("/feeds/", "/new-home/"))
        if draw < habits.moved + habits.gone:
            return place.replace(gone_at=at)
        # New ids can be distinguished from new posts only while little is new and nothing else is unusual.
        can_have_new_ids = place.is_dated and place.has_ids and place.pace.posts_a_day < 2
        if can_have_new_ids and draw < habits.moved + habits.gone + habits.new_ids:
            return place.replace(new_ids_at=at, pace=place.pace.replace(bursts_a_day=0.0))
        return place


def _name(chance: Random, language: str, number: int) -> str:
    names = CHINESE_NAMES if language == "zh" else ENGLISH_NAMES
    return f"{chance.choice(names)} {number}"


# ── the history of one place ──────────────────────────────────────────────────────────────────────────────────────


class _Story:
    """Generates the history of one place, post by post."""

    def __init__(self, world: World, place: Place) -> None:
        self.world, self.place, self.habits = world, place, world.habits
        self.chance = chance_of(world.seed, "story", place.number)
        # Under new ids an old entry is known by its link alone; one that comes back among new ones would count as new.
        self.is_calm = place.new_ids_at is not None
        self.told: list[Post] = []

    def posts(self) -> tuple[Post, ...]:
        world = self.world
        times = world.rhythms.get(self.place.number)
        if times is None:
            times = moments(
                chance_of(world.seed, "moments", self.place.number),
                self.place.pace,
                int(world.start.timestamp()),
                int(world.end.timestamp()),
            )
        for at in times:
            self.told.append(self._post(len(self.told), datetime.fromtimestamp(at, UTC)))
        return tuple(sorted(self.told, key=_by_arrival))

    def _post(self, number: int, at: datetime) -> Post:
        chance, place = self.chance, self.place
        created_at, shown_from = self._dates(at)
        repeated = self._repeated(created_at)
        language, words = self._words() if repeated is None else (repeated.language, _first_words(repeated))
        removed_at, restored_at = self._removal(shown_from)
        id = f"p{place.number}-{number}"
        return Post(
            id=id,
            place=place.number,
            number=number,
            created_at=created_at,
            shown_from=shown_from,
            versions=self._versions(words, shown_from, language),
            author=chance.choice(AUTHORS),
            tags=tuple(chance.sample(TAGS, k=chance.randint(0, 2))),
            language=language,
            picture=f"https://{place.host}.example/pictures/{id}.jpg"
            if chance.random() < self.habits.pictured
            else None,
            removed_at=removed_at,
            restored_at=restored_at,
            repeats=repeated.id if repeated else None,
        )

    def _words(self) -> tuple[str, Words]:
        language = self.place.language if self.place.language != "both" else self.chance.choice(("en", "zh"))
        return language, self.world.phrasebook.words(self.chance, language, self.habits.hostile)

    def _repeated(self, created_at: datetime) -> Post | None:
        """The earlier post whose text is repeated. Without dates, or with the same date on both, a repost could not be
        distinguished from an old entry under a new id: neither occurs."""
        is_one = self.place.is_dated and not self.is_calm and self.chance.random() < self.habits.reposted
        if not is_one or not self.told:
            return None
        post = self.told[-1 - int(self.chance.random() * min(len(self.told), self.place.window))]
        return post if post.created_at != created_at else None

    def _dates(self, at: datetime) -> tuple[datetime, datetime]:
        """The date it claims, and when it really appeared."""
        draw = self.chance.random()
        if not self.place.is_dated or self.is_calm:
            return at, at
        if draw < self.habits.late:
            return at, at + _while(self.chance, 10 * 60, 36 * 3600)
        if draw < self.habits.late + self.habits.future and self.place.form not in DATED_WHEN_WRITTEN:
            return at + _while(self.chance, 3600, 72 * 3600), at
        return at, at

    def _removal(self, shown_from: datetime) -> tuple[datetime | None, datetime | None]:
        if self.is_calm or self.chance.random() >= self.habits.removed:
            return None, None
        removed_at = shown_from + _while(self.chance, 60, 2 * 86_400)
        is_restored = self.chance.random() < self.habits.restored
        return removed_at, removed_at + _while(self.chance, 60, 86_400) if is_restored else None

    def _versions(self, words: Words, shown_from: datetime, language: str) -> tuple[Version, ...]:
        chance, said, at = self.chance, [words], [shown_from]
        while chance.random() < self.habits.edited * (3 if len(said) > 1 else 1):
            # Half of all edits correct a mistake within minutes; the others come days later.
            at.append(at[-1] + (_while(chance, 30, 900) if chance.random() < 0.5 else _while(chance, 3600, 4 * 86_400)))
            is_reverted = len(said) > 1 and chance.random() < self.habits.reverted
            said.append(said[-2] if is_reverted else self.world.phrasebook.edited(chance, said[-1], language))
        return tuple(
            Version(number, from_at, words.title, words.text, words.html)
            for number, (from_at, words) in enumerate(zip(at, said, strict=True), start=1)
        )


def _first_words(post: Post) -> Words:
    first = post.versions[0]
    return Words(first.title, first.text, first.html)


def _while(chance: Random, least: float, most: float) -> timedelta:
    """Some whole seconds between the two; short ones are more frequent."""
    return timedelta(seconds=int(least * (most / least) ** chance.random()))


class Timeline:
    """One place's posts, in the orders that queries need."""

    def __init__(self, place: Place, posts: tuple[Post, ...]) -> None:
        self.place, self.posts = place, posts
        self._ordered = sorted(posts, key=_by_arrival if place.is_by_arrival else _by_date, reverse=True)
        changes = {at for post in posts for at in post.changes()}
        self._changes = sorted(changes | {place.new_ids_at} if place.new_ids_at else changes)
        self._cached: tuple[datetime | None, Shown] = (None, ())

    def changed_at(self, at: datetime) -> datetime:
        before = bisect_right(self._changes, at)
        return self._changes[before - 1] if before else at

    def shown(self, at: datetime) -> Shown:
        changed_at = self.changed_at(at)
        if self._cached[0] != changed_at:
            self._cached = (changed_at, self._look(changed_at))
        return self._cached[1]

    def glimpses(self, after: datetime, until: datetime) -> dict[str, list[int]]:
        between = self._changes[bisect_right(self._changes, after) : bisect_right(self._changes, until)]
        seen: dict[str, set[int]] = {}
        for at in (after, *between):
            for post, version in self._look(at):
                seen.setdefault(post.id, set()).add(version.number)
        return {id: sorted(numbers) for id, numbers in seen.items()}

    def _look(self, at: datetime) -> Shown:
        found: list[tuple[Post, Version]] = []
        for post in self._ordered:
            if post.shown_from <= at and not post.is_removed(at):
                found.append((post, post.version(at)))
                if len(found) == self.place.window:
                    break
        return tuple(found)


def _by_date(post: Post) -> tuple[datetime, int]:
    return post.created_at, post.number


def _by_arrival(post: Post) -> tuple[datetime, int]:
    return post.shown_from, post.number
