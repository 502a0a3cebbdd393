"""`reader`, the library for feed readers: feedparser, SQLite, validators kept."""

from __future__ import annotations

import sys
from pathlib import Path

from reader import make_reader  # type: ignore[import-not-found]

from bench.peers import tell_peak


def main() -> None:
    action, base, feeds, home = sys.argv[1:]
    reader = make_reader(str(Path(home) / "peer.db"))
    if action == "prepare":
        for feed in range(int(feeds)):
            reader.add_feed(f"{base}/f/{feed}.xml")
    elif action == "collect":
        # By itself it leaves out what it has asked within the hour.
        reader.update_feeds(scheduled=False)
    reader.close()
    tell_peak()


if __name__ == "__main__":
    main()
