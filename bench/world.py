"""A small world of feeds, the same on every machine: 500 feeds of 50 entries, served to whoever asks on this machine.

Even feeds are RSS 2.0 with their HTML in CDATA, odd ones Atom 1.0 with it escaped. An entry has about 1.5 KB of HTML;
three of five are in English, two in Chinese. In round 1 all is new. In round 2, of every 50 feeds 5 have gained 5
entries (and lost their 5 oldest), 1 has an entry whose text was edited, and the others answer 304 to their validators.
Round 3 is round 2 again without validators: identical bytes, and only their reader can know.

`python -m bench.world --feeds 500` serves it on a port of its own choice, which it prints, until its input is closed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from hashlib import sha256
from html import escape
from typing import cast
from urllib.parse import parse_qs, urlsplit

SITE = "http://world.example"
EDIT_WORD = "corrigendumqx"
BLOCK, GROWN, GAINED = 50, 5, 5
"""Of every so many feeds so many grow by so many entries; one more has an edit."""
ENTRY_BYTES = 1_500
CHINESE_SHARE = 0.4
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)

ENGLISH = tuple(
    """anchor basket candle delta engine ferry granite harvest island jacket kernel ladder meadow needle orchard pebble
    quarry ribbon saddle timber umbrella valley window yellow amber branch cellar dinner eleven feather gather hollow
    inside journal kitchen lantern marble northern oyster paper quiet river silver tunnel under village winter answer
    bridge copper drawing evening forest garden harbour insect justice keeper letter mirror number office pattern
    question record signal thread update version weather""".split()  # noqa: SIM905 — words are easier to read than lists
)
CHINESE = tuple(
    """河口 山坡 雨季 档册 信箱 码头 灯塔 集市 账目 果树 车轨 气象 站台 预案 网格 数字 核心 编排 花圃 单车
    展览馆 译文 文法 琴声 菜谱 海湾 冰原 丈量 笔录 观测 刊登 采集 对照 校订 答复 疑问 议论 留言 版次 修补
    藏书楼 发动机 蓄电 卫士 放大镜 针剂 宁静 黎明 南方 公用 当地 细心 敞开 迟缓 平稳 隐秘 市镇 溪流 峡谷 住户
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class Entry:
    id: str
    link: str
    title: str
    author: str
    tags: tuple[str, ...]
    summary: str
    html: str
    published: datetime
    updated: datetime


@dataclass(frozen=True)
class Expected:
    """What a collector must have in the end."""

    feeds: int
    items_after_round_1: int
    changed_feeds: int
    items: int
    edited: tuple[str, ...]
    """The ids of the entries that were edited."""


class World:
    """All of it is a function of the numbers given here; one feed does not depend on how many there are."""

    def __init__(self, feeds: int = 500, entries: int = 50, seed: int = 11) -> None:
        self.feeds, self.entries, self.seed = feeds, entries, seed
        chance = random.Random(f"{seed} sentences")
        self.english = [" ".join(chance.choices(ENGLISH, k=8 + n % 9)).capitalize() + "." for n in range(600)]
        self.chinese = ["".join(chance.choices(CHINESE, k=7 + n % 8)) + "。" for n in range(600)]

    def place_in_block(self, feed: int) -> int:
        """Its place in an order of its block that looks like chance: the first ones grow, the next one has the edit."""
        block, own = divmod(feed, BLOCK)
        order = [sha256(f"{self.seed} {block} {place}".encode()).digest() for place in range(BLOCK)]
        return sorted(order).index(order[own])

    def has_grown(self, feed: int) -> bool:
        return self.place_in_block(feed) < GROWN

    def edited_entry(self, feed: int) -> int | None:
        if self.place_in_block(feed) != GROWN:
            return None
        return random.Random(f"{self.seed} edit {feed}").randrange(self.entries)

    def is_changed(self, feed: int) -> bool:
        return self.place_in_block(feed) <= GROWN

    def expected(self) -> Expected:
        grown = sum(self.has_grown(feed) for feed in range(self.feeds))
        edits = {feed: number for feed in range(self.feeds) if (number := self.edited_entry(feed)) is not None}
        return Expected(
            feeds=self.feeds,
            items_after_round_1=self.feeds * self.entries,
            changed_feeds=grown + len(edits),
            items=self.feeds * self.entries + grown * GAINED,
            edited=tuple(entry_id(feed, number) for feed, number in edits.items()),
        )

    def entry(self, feed: int, number: int) -> Entry:
        """One entry as it was first published; number 0 is the oldest."""
        chance = random.Random(f"{self.seed} {feed} {number}")
        sentences = self.chinese if chance.random() < CHINESE_SHARE else self.english

        def sentence() -> str:
            return sentences[int(chance.random() * 600)]

        published = BEGIN + timedelta(minutes=360 * number + feed % 360, seconds=feed % 60)
        return Entry(
            id=entry_id(feed, number),
            link=f"{SITE}/p/{feed}/{number}",
            title=f"{sentence()[:-1][:90]} #{feed}-{number}",
            author=f"author{int(chance.random() * 40)}",
            tags=(ENGLISH[int(chance.random() * 30)], CHINESE[int(chance.random() * 30)]),
            summary=sentence(),
            html="\n".join(_paragraphs(sentence, f"{feed}/{number}")),
            published=published,
            updated=published,
        )

    def shown(self, feed: int, round_number: int) -> list[Entry]:
        """What a feed shows in a round, newest first."""
        is_later = round_number > 1
        gained = GAINED if is_later and self.has_grown(feed) else 0
        edited = self.edited_entry(feed) if is_later else None
        numbers = range(gained + self.entries - 1, gained - 1, -1)
        return [self._edited(feed, number) if number == edited else self.entry(feed, number) for number in numbers]

    def _edited(self, feed: int, number: int) -> Entry:
        entry = self.entry(feed, number)
        html = f"{entry.html}\n<p>{EDIT_WORD} {self.english[feed % 600]}</p>"
        # RSS has no place for the time of an edit: there nothing but the text tells it.
        return replace(entry, html=html, updated=BEGIN + timedelta(days=60))

    def modified(self, feed: int, round_number: int) -> datetime:
        days = 61 if round_number > 1 and self.is_changed(feed) else 59
        return BEGIN + timedelta(days=days, seconds=feed)

    def body(self, feed: int, round_number: int) -> bytes:
        write = _rss if feed % 2 == 0 else _atom
        title = f"Feed {feed} {self.chinese[feed % 600]}"
        modified = self.modified(feed, round_number)
        return write(feed, title, self.english[feed % 600], modified, self.shown(feed, round_number)).encode()


def entry_id(feed: int, number: int) -> str:
    return f"tag:world.example,2026:{feed}/{number}"


def _paragraphs(sentence: Callable[[], str], where: str) -> Iterator[str]:
    size = place = 0
    while size < ENTRY_BYTES:
        place += 1
        if place == 2:
            paragraph = f'<p><img src="{SITE}/img/{where}.jpg" alt="{place}"/></p>'
        elif place % 4 == 0:
            link = f"{SITE}/x/{where}/{place}?a=1&amp;b=2"
            paragraph = f'<ul><li>{sentence()}</li><li><a href="{link}">{sentence()}</a></li></ul>'
        else:
            paragraph = f"<p>{sentence()} <strong>{sentence()}</strong> {sentence()}</p>"
        size += len(paragraph.encode())
        yield paragraph


def _rss(feed: int, title: str, about: str, modified: datetime, entries: list[Entry]) -> str:
    items = "".join(
        f"<item><title>{escape(each.title)}</title><link>{each.link}</link>"
        f'<guid isPermaLink="false">{each.id}</guid><dc:creator>{each.author}</dc:creator>'
        + "".join(f"<category>{tag}</category>" for tag in each.tags)
        + f"<pubDate>{format_datetime(each.published)}</pubDate><description>{escape(each.summary)}</description>"
        f"<content:encoded><![CDATA[{each.html}]]></content:encoded></item>\n"
        for each in entries
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/"'
        f' xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>\n<title>{escape(title)}</title><link>{SITE}/s/{feed}</link>'
        f"<description>{about}</description><language>{'zh' if feed % 4 else 'en'}</language>\n"
        f"{items}</channel></rss>\n"
    )


def _atom(feed: int, title: str, about: str, modified: datetime, entries: list[Entry]) -> str:
    items = "".join(
        f'<entry><title>{escape(each.title)}</title><link rel="alternate" href="{each.link}"/><id>{each.id}</id>'
        f"<author><name>{each.author}</name></author>"
        + "".join(f'<category term="{tag}"/>' for tag in each.tags)
        + f"<published>{each.published.isoformat()}</published><updated>{each.updated.isoformat()}</updated>"
        f'<summary>{escape(each.summary)}</summary><content type="html">{escape(each.html)}</content></entry>\n'
        for each in entries
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">\n'
        f"<title>{escape(title)}</title><subtitle>{about}</subtitle><id>tag:world.example,2026:feed/{feed}</id>"
        f'<link href="{SITE}/s/{feed}"/><updated>{modified.isoformat()}</updated>\n{items}</feed>\n'
    )


# ── serving it ────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Page:
    """One feed of one round, ready to be sent."""

    etag: bytes
    modified: bytes
    body: bytes
    head: bytes

    @property
    def validators(self) -> bytes:
        return b"ETag: " + self.etag + b"\r\nLast-Modified: " + self.modified + b"\r\n"

    def is_known_to(self, head: bytes) -> bool:
        if (etag := _header(head, b"if-none-match")) is not None:
            return self.etag in etag
        return _header(head, b"if-modified-since") == self.modified


class Site:
    """The world as a server sees it: a round, whether validators are given and honoured, and what was asked so far."""

    def __init__(self, world: World) -> None:
        self.world = world
        first = [self._page(feed, 1) for feed in range(world.feeds)]
        later = [self._page(feed, 2) if world.is_changed(feed) else first[feed] for feed in range(world.feeds)]
        self.pages = {1: first, 2: later, 3: later}
        self.turn_to(1)

    def turn_to(self, round_number: int) -> None:
        self.round = round_number
        self.asked = {"requests": 0, "whole": 0, "not_modified": 0}

    def _page(self, feed: int, round_number: int) -> Page:
        body = self.world.body(feed, round_number)
        kind = "rss" if feed % 2 == 0 else "atom"
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: application/{kind}+xml; charset=utf-8\r\nContent-Length: {len(body)}\r\n"
        )
        modified = format_datetime(self.world.modified(feed, round_number), usegmt=True)
        return Page(f'"{sha256(body).hexdigest()[:20]}"'.encode(), modified.encode(), body, head.encode())

    def answer(self, head: bytes) -> tuple[bytes, bytes]:
        """The head (without its closing line) and the body that answer a request."""
        path = head.split(b" ", 2)[1].decode("latin-1")
        if path.startswith("/f/"):
            return self._feed(int(path[3:].removesuffix(".xml")), head)
        if path.startswith("/round"):
            self.turn_to(int(parse_qs(urlsplit(path).query)["number"][0]))
        elif path != "/asked":
            return b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n", b""
        body = json.dumps(self.asked).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n" % len(body), body

    def _feed(self, feed: int, head: bytes) -> tuple[bytes, bytes]:
        page = self.pages[self.round][feed]
        self.asked["requests"] += 1
        if self.round < 3 and page.is_known_to(head):
            self.asked["not_modified"] += 1
            return b"HTTP/1.1 304 Not Modified\r\n" + page.validators, b""
        self.asked["whole"] += 1
        return page.head + (page.validators if self.round < 3 else b""), page.body


def _header(head: bytes, name: bytes) -> bytes | None:
    start = head.lower().find(b"\r\n" + name + b":")
    return None if start < 0 else head[start + len(name) + 3 : head.find(b"\r\n", start + 2)].strip()


class Connection(asyncio.Protocol):
    """Just enough HTTP/1.1 for an honest client on the same machine: GET, keep-alive."""

    def __init__(self, site: Site, seconds: float) -> None:
        self.site, self.seconds, self.received = site, seconds, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            request, self.received = self.received[: end + 2], self.received[end + 4 :]
            head, body = self.site.answer(request)
            if self.seconds:
                asyncio.get_running_loop().call_later(self.seconds, self._send, head, body)
            else:
                self._send(head, body)

    def _send(self, head: bytes, body: bytes) -> None:
        self.transport.writelines([head, b"\r\n", body])


async def serve(world: World, hosts: int, seconds: float) -> None:
    """Serve until the one who started this closes our input."""
    site, loop = Site(world), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(site, seconds), "127.0.0.1", 0, backlog=1024)
    port = server.sockets[0].getsockname()[1]
    for host in range(2, hosts + 1):
        await loop.create_server(lambda: Connection(site, seconds), f"127.0.0.{host}", port, backlog=1024)
    print(port, flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


def main() -> None:
    options = argparse.ArgumentParser(description="serve the world of feeds on 127.0.0.1")
    options.add_argument("--feeds", type=int, default=500)
    options.add_argument("--entries", type=int, default=50)
    options.add_argument("--hosts", type=int, default=1, help="how many addresses of this machine serve it")
    options.add_argument("--seconds", type=float, default=0.0, help="how long each answer takes")
    asked = options.parse_args()
    # Only of those who serve: whoever draws the same texts elsewhere needs no faster loop.
    import uvloop

    uvloop.run(serve(World(asked.feeds, asked.entries), asked.hosts, asked.seconds))


if __name__ == "__main__":
    main()
