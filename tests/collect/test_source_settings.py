"""The settings of a source: values of the right type, or an error that says what is right."""

from __future__ import annotations

from typing import Any

import pytest

from catchment.collect.source_settings import checked_settings
from catchment.errors import InvalidInput
from catchment.model import Field, Kind

FIELDS = (
    Field("days", "", minimum=1, maximum=10),
    Field("least", "", minimum=1),
    Field("most", "", maximum=10),
    Field("form", "", choices=("a", "b")),
)
KIND = Kind("board", "A board", 60, "1", (), fields=FIELDS)


@pytest.mark.parametrize("given", [3, "3", 3.0])
def test_a_whole_number_may_be_given_as_text(given: Any) -> None:
    assert checked_settings(KIND, {"days": given}) == {"days": 3}


@pytest.mark.parametrize("given", [3.7, True, "3.7", "many", float("inf"), float("nan"), [3], None])
def test_what_is_no_whole_number_is_refused_and_not_rounded(given: Any) -> None:
    with pytest.raises(InvalidInput, match="is not a whole number"):
        checked_settings(KIND, {"days": given})


@pytest.mark.parametrize(
    ("name", "given", "helps"), [("days", 11, "from 1 to 10"), ("least", 0, "at least 1"), ("most", 11, "at most 10")]
)
def test_a_number_out_of_bounds_is_refused_with_the_bounds_that_there_are(name: str, given: int, helps: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_settings(KIND, {name: given})
    assert str(refused.value) == f"{name}={given} — {helps}"


@pytest.mark.parametrize("name", ["days", "form"])
def test_a_secret_in_the_wrong_field_is_not_shown(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        checked_settings(KIND, {name: "https://ada:sesame-4711@a.example/"})
    assert "sesame" not in str(refused.value)
