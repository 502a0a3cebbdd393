"""A strict reader of the text form of Prometheus: whatever is not exactly as it should be is refused."""

from __future__ import annotations

import re
from typing import NamedTuple

NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
LABEL = r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"'
NUMBER = r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?"
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ({NUMBER})")
HELP = re.compile(rf"# HELP ({NAME}) (\S(?:[^\\\n]|\\[\\n])*)")
TYPE = re.compile(rf"# TYPE ({NAME}) (counter|gauge|summary)")
ENDINGS = {"counter": {""}, "gauge": {""}, "summary": {"_sum", "_count"}}


class Read(NamedTuple):
    sorts: dict[str, str]
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float]

    def value(self, name: str, **labels: str) -> float:
        return self.samples[name, frozenset(labels.items())]

    def of(self, name: str) -> dict[frozenset[tuple[str, str]], float]:
        return {labels: value for (one, labels), value in self.samples.items() if one == name}


def read(text: str) -> Read:
    assert text.endswith("\n")
    sorts: dict[str, str] = {}
    samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
    family = ""
    lines = iter(text.removesuffix("\n").split("\n"))
    for line in lines:
        if line.startswith("#"):
            helped, typed = HELP.fullmatch(line), TYPE.fullmatch(next(lines))
            assert helped, f"not a line of HELP: {line}"
            assert typed, f"no line of TYPE after: {line}"
            assert helped[1] == typed[1]
            assert typed[1] not in sorts, f"{typed[1]} is told twice"
            family, sorts[typed[1]] = typed[1], typed[2]
            assert (typed[2] == "counter") == family.endswith("_total"), family
            continue
        found = SAMPLE.fullmatch(line)
        assert found, f"not a sample: {line}"
        assert found[1].removeprefix(family) in ENDINGS[sorts[family]], f"{line} is not of {family}"
        labels = re.findall(LABEL, found[2] or "")
        assert len({name for name, _ in labels}) == len(labels), line
        key = (found[1], frozenset(labels))
        assert key not in samples, f"told twice: {line}"
        samples[key] = float(found[len(found.groups())])
        assert sorts[family] != "counter" or samples[key] >= 0
    return Read(sorts, samples)
