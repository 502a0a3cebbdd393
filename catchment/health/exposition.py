"""The text form that Prometheus reads. Pure: families of samples in, lines out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Sort(StrEnum):
    COUNTER = "counter"
    """Only ever grows, from when the process that tells it began."""
    GAUGE = "gauge"
    SUMMARY = "summary"


class Sample(NamedTuple):
    value: float
    labels: Mapping[str, str] = {}
    ending: str = ""
    """Of its name: a summary has samples that end with `_sum` and `_count`."""


class Family(NamedTuple):
    """Samples of one name. Without any it is left out: unknown is not zero."""

    name: str
    sort: Sort
    what: str
    samples: Iterable[Sample]


def exposed(families: Iterable[Family]) -> str:
    return "".join(f"{line}\n" for family in families for line in _lines(family))


def _lines(family: Family) -> Iterator[str]:
    samples = list(family.samples)
    if not samples:
        return
    yield f"# HELP {family.name} {_escaped(family.what)}"
    yield f"# TYPE {family.name} {family.sort}"
    for one in samples:
        yield f"{family.name}{one.ending}{_labels(one.labels)} {_number(one.value)}"


def _labels(labels: Mapping[str, str]) -> str:
    quoted = [f'{name}="{_escaped(value, quote=True)}"' for name, value in labels.items()]
    return f"{{{','.join(quoted)}}}" if quoted else ""


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", "\\\\").replace("\n", "\\n")
    return text.replace('"', '\\"') if quote else text


def _number(value: float) -> str:
    return repr(value) if isinstance(value, float) else str(int(value))
