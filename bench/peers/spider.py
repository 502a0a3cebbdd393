"""Scrapy with a pipeline into SQLite: its own downloader and selectors, validators kept in a table."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import scrapy  # type: ignore[import-not-found]
from scrapy.crawler import CrawlerProcess  # type: ignore[import-not-found]

from bench.peers import tell_peak

SCHEMA = """
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = NORMAL;
    CREATE TABLE IF NOT EXISTS entries (id TEXT PRIMARY KEY, feed, link, title, author, tags, published, content);
    CREATE INDEX IF NOT EXISTS by_time ON entries (published);
    CREATE TABLE IF NOT EXISTS etags (url TEXT PRIMARY KEY, etag TEXT);
"""
UPSERT = """
    INSERT INTO entries VALUES (:id, :feed, :link, :title, :author, :tags, :published, :content)
    ON CONFLICT (id) DO UPDATE SET title = excluded.title, content = excluded.content
    WHERE content IS NOT excluded.content
"""


class Pipeline:
    """One transaction for each feed."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database

    @classmethod
    def from_crawler(cls, crawler: Any) -> Pipeline:
        return cls(crawler.spider.database)

    def process_item(self, item: dict[str, Any]) -> dict[str, Any]:
        with self.database:
            self.database.executemany(UPSERT, item["entries"])
            self.database.execute("INSERT OR REPLACE INTO etags VALUES (?, ?)", (item["url"], item["etag"]))
        return item


class Feeds(scrapy.Spider):  # type: ignore[misc]
    name = "feeds"
    handle_httpstatus_list = (304,)

    async def start(self) -> AsyncIterator[Any]:
        etags = dict(self.database.execute("SELECT url, etag FROM etags"))
        for url in self.urls:
            headers = {"If-None-Match": etags[url]} if etags.get(url) else {}
            yield scrapy.Request(url, headers=headers)

    def parse(self, response: Any) -> Iterator[dict[str, Any]]:
        if response.status == 304:
            return
        response.selector.remove_namespaces()
        yield {
            "url": response.url,
            "etag": (response.headers.get("ETag") or b"").decode(),
            "entries": [entry_of(response.url, node) for node in response.xpath("//item | //entry")],
        }


def entry_of(feed: str, entry: Any) -> dict[str, Any]:
    return {
        "feed": feed,
        "id": entry.xpath("(guid | id)/text()").get(),
        "link": entry.xpath("link/text() | link/@href").get(),
        "title": entry.xpath("title/text()").get(),
        "author": entry.xpath("creator/text() | author/name/text()").get(),
        "tags": ",".join(entry.xpath("category/text() | category/@term").getall()),
        "published": entry.xpath("(pubDate | published)/text()").get(),
        "content": "".join(entry.xpath("encoded/text() | content/text()").getall()),
    }


def main() -> None:
    action, base, feeds, home = sys.argv[1:]
    database = sqlite3.connect(Path(home) / "peer.db")
    database.executescript(SCHEMA)
    settings = {
        "ITEM_PIPELINES": {Pipeline: 1},
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
        "ROBOTSTXT_OBEY": False,
        # One host here, as with ours: as fast as it answers.
        "DOWNLOAD_DELAY": 0,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 8,
    }
    count = int(feeds) if action == "collect" else 0
    process = CrawlerProcess(settings)
    process.crawl(Feeds, database=database, urls=[f"{base}/f/{feed}.xml" for feed in range(count)])
    process.start()
    database.close()
    tell_peak()


if __name__ == "__main__":
    main()
