"""The text form of Prometheus."""

from __future__ import annotations

import pytest

from catchment.health.exposition import Family, Sample, Sort, exposed
from tests.health.exposition import read


def test_families_are_told_with_help_type_and_samples() -> None:
    families = [
        Family("a_total", Sort.COUNTER, "How many.", [Sample(3, {"x": "1", "y": "2"}), Sample(0, {"x": "2"})]),
        Family("b", Sort.GAUGE, "How much.", [Sample(0.25)]),
        Family("c", Sort.SUMMARY, "How long.", [Sample(1.5, {}, "_sum"), Sample(2, {}, "_count")]),
    ]
    assert exposed(families).splitlines() == [
        "# HELP a_total How many.",
        "# TYPE a_total counter",
        'a_total{x="1",y="2"} 3',
        'a_total{x="2"} 0',
        "# HELP b How much.",
        "# TYPE b gauge",
        "b 0.25",
        "# HELP c How long.",
        "# TYPE c summary",
        "c_sum 1.5",
        "c_count 2",
    ]


def test_a_family_without_samples_is_left_out() -> None:
    assert exposed([Family("a", Sort.GAUGE, "Unknown.", [])]) == ""


def test_whatever_stands_in_a_label_or_a_help_stays_on_its_line() -> None:
    evil = 'quote " backslash \\ newline \n end'
    text = exposed([Family("a", Sort.GAUGE, evil, [Sample(1, {"x": evil})])])
    ((labels, _),) = read(text).of("a").items()
    assert labels == {("x", 'quote \\" backslash \\\\ newline \\n end')}


@pytest.mark.parametrize(
    "text",
    [
        "a 1\n",
        "# HELP a x\n# TYPE a gauge\na 1",
        "# HELP a x\n# TYPE b gauge\nb 1\n",
        "# HELP a x\n# TYPE a counter\na 1\n",
        "# HELP a_total x\n# TYPE a_total gauge\na_total 1\n",
        "# HELP a x\n# TYPE a gauge\na 1\na 1\n",
        "# HELP a x\n# TYPE a gauge\nb 1\n",
        '# HELP a x\n# TYPE a gauge\na{x="1",x="2"} 1\n',
        '# HELP a x\n# TYPE a gauge\na{x="\\q"} 1\n',
        "# HELP a x\n# TYPE a gauge\na nothing\n",
        "# HELP a x\n# TYPE a summary\na 1\n",
    ],
)
def test_the_reader_of_these_tests_refuses_what_is_not_exactly_right(text: str) -> None:
    with pytest.raises((AssertionError, KeyError)):
        read(text)
