"""Whatever comes, `collect` stays small: measured in a process of its own, on answers as large as are taken."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from catchment import work_limits
from tests.hostile import Hostile, reply

MOST_MEGABYTES = 400
COLLECT = """
import sys
from catchment.cli.main import main
sys.argv = ["catchment", "collect", "--all", "--json"]
try:
    main()
finally:
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    sys.stderr.write("peak " + peak.split()[1])
"""


def feed(*entries: str) -> bytes:
    return f'<rss version="2.0"><channel><title>A feed</title>{"".join(entries)}</channel></rss>'.encode()


def entry(number: int, inside: str) -> str:
    return f"<item><guid>{number}</guid><title>About {number}</title><description>{inside}</description></item>"


def honest() -> bytes:
    paragraphs = "<p>Some <b>honest</b> words &amp; more of them.</p>" * 400
    return feed(*(entry(number, f"<![CDATA[{paragraphs}]]>") for number in range(900)))


def words() -> bytes:
    return feed(*(entry(number, "ab " * 330_000) for number in range(18)))


def ampersands() -> bytes:
    return feed(f"<item><title>{'&' * 19_000_000}</title></item>")


def nodes() -> bytes:
    return feed(entry(1, "words"), "<a/>xx" * (work_limits.MOST_XML_NODES - 100))


def nested() -> bytes:
    return feed(*(entry(number, f"<![CDATA[{'<div>' * 9_999}]]>") for number in range(379)))


def page() -> bytes:
    paragraph = "<p>" + "Some honest words that make a sentence \U0001f600. " * 40 + "</p>"
    return f"<html><head><title>A page</title></head><body><main>{paragraph * 4_900}</main></body></html>".encode()


def one_paragraph() -> bytes:
    words = "word \U0001f600 " * 1_260_000
    return f"<html><head><title>A page</title></head><body><p>{words}</p></body></html>".encode()


def values() -> bytes:
    return json.dumps({f"k{number:06}": f"v{number}" for number in range(work_limits.MOST_JSON_VALUES - 100)}).encode()


ANSWERS = {
    "honest": ("rss", honest, "succeeded"),
    "words": ("rss", words, "succeeded"),
    "ampersands": ("rss", ampersands, "failed"),
    "nodes": ("rss", nodes, "succeeded"),
    "nested": ("rss", nested, "failed"),
    "page": ("website", page, "succeeded"),
    "one_paragraph": ("website", one_paragraph, "failed"),
    "values": ("custom_api", values, "failed"),
}


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells no peak of memory")
def test_the_largest_answers_of_all_sorts_at_once_take_less_than_400_megabytes(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "CATCHMENT_HOME": str(tmp_path),
        "CATCHMENT_ALLOW_PRIVATE_NETWORKS": "true",
        "CATCHMENT_TIMEOUT_SECONDS": "300",
    }
    with Hostile() as server:
        rows = [
            {"kind": kind, "target": server.on(f"/{name}", reply(gzip.compress(make(), 1), content_encoding="gzip"))}
            for name, (kind, make, _) in ANSWERS.items()
        ]
        (tmp_path / "list.json").write_text(json.dumps(rows))
        add = [sys.executable, "-m", "catchment", "sources", "import", str(tmp_path / "list.json")]
        subprocess.run(add, env=environment, check=True, capture_output=True, timeout=300)
        done = subprocess.run(
            [sys.executable, "-c", COLLECT], env=environment, capture_output=True, text=True, timeout=600, check=False
        )
    results = json.loads(done.stdout)["results"]
    assert {_name(result, rows): result["outcome"] for result in results} == {
        name: outcome for name, (_, _, outcome) in ANSWERS.items()
    }
    assert int(done.stderr.rpartition("peak ")[2]) // 1024 < MOST_MEGABYTES


def _name(result: dict[str, int], rows: list[dict[str, str]]) -> str:
    """Which answer a result is about: sources are numbered as the list has them."""
    return rows[result["source_id"] - 1]["target"].rpartition("/")[2]
