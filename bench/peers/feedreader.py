"""`reader`, the library for feed readers: feedparser, SQLite, validators kept."""

from __future__ import annotations

import sys
from pathlib import Path

from reader import make_reader  # type: ignore[import-not-found]


def main() -> None:
    deed, base, feeds, home = sys.argv[1:]
    reader = make_reader(str(Path(home) / "peer.db"))
    if deed == "prepare":
        for feed in range(int(feeds)):
            reader.add_feed(f"{base}/f/{feed}.xml")
    elif deed == "collect":
        reader.update_feeds()
    reader.close()


if __name__ == "__main__":
    main()
