"""dlt into SQLite: its client, merged by id; the fastest parser there is. It keeps no validators."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ |= {"RUNTIME__DLTHUB_TELEMETRY": "false", "RUNTIME__LOG_LEVEL": "ERROR"}

import dlt  # type: ignore[import-not-found]
import fastfeedparser  # type: ignore[import-untyped]
from dlt.sources.helpers import requests  # type: ignore[import-not-found]

from bench.peers import tell_peak


@dlt.resource(name="entries", write_disposition="merge", primary_key="id")  # type: ignore[untyped-decorator]
def entries(urls: list[str]) -> Iterator[list[dict[str, Any]]]:
    for url in urls:
        yield [
            {
                "id": entry.get("id"),
                "feed": url,
                "link": entry.get("link"),
                "title": entry.get("title"),
                "author": entry.get("author"),
                "tags": ",".join(tag["term"] for tag in entry.get("tags", ())),
                "published": entry.get("published"),
                "content": entry["content"][0]["value"],
            }
            for entry in fastfeedparser.parse(requests.get(url).content).entries
        ]


def main() -> None:
    action, base, feeds, home = sys.argv[1:]
    # SQLite's schema `main` is the file itself; a dataset of another name becomes a file beside it.
    place = dlt.destinations.sqlalchemy(f"sqlite:///{Path(home) / 'peer.db'}")
    pipeline = dlt.pipeline("peer", destination=place, dataset_name="main", pipelines_dir=home)
    if action == "collect":
        pipeline.run(entries([f"{base}/f/{feed}.xml" for feed in range(int(feeds))]))
    tell_peak()


if __name__ == "__main__":
    main()
