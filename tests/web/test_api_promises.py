"""The API keeps what its description promises, whatever it is asked: schemathesis asks everything that the description
allows and much that it does not, and compares every answer with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import schemathesis
from cryptography.fernet import Fernet
from hypothesis import HealthCheck, settings
from schemathesis.checks import ignored_auth, positive_data_acceptance

from catchment.errors import Missing
from catchment.web.app import described
from tests.town import TownApp
from tests.web.desk import Desk

schema = schemathesis.openapi.from_dict(described().openapi())
# Who has no key, or a wrong one, is the subject of test_api_keys: here everybody has the right one.
schema.config.generation.with_security_parameters = False


@pytest.fixture
def filled(tmp_path: Path) -> Iterator[Desk]:
    """An archive with something of everything that can be asked for."""
    here = TownApp(
        tmp_path / "home", f"sqlite:///{tmp_path / 'catchment.db'}", master_key=Fernet.generate_key().decode()
    )
    feed, broken = here.town.feed("one", title="One"), here.town.feed("two")
    for number in range(4):
        feed.post(f"p{number}", at=here.clock.now() - timedelta(hours=number))
    broken.says.extend([Missing("not there", status=404)] * 10)
    sources = [here.follow(feed), here.follow(broken)]
    here.collect(*sources)
    feed.post("p1", text="second thoughts")
    here.collect(*sources)
    here.app.store.credentials.add("feeds", "mine", "key-1", b"sealed", here.clock.now())
    yield Desk(here)
    here.close()


@schema.parametrize()
@settings(
    max_examples=10,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
)
def test_every_answer_is_one_that_was_promised(case: schemathesis.Case, filled: Desk) -> None:
    asked = case.as_transport_kwargs(base_url="http://127.0.0.1:8700", headers={"X-API-Key": filled.key})
    del asked["cookies"]
    if "data" in asked:
        asked["content"] = asked.pop("data")
    # What a body asks for may make no sense for more reasons than a description can tell: there is no such credential.
    # So may the place in a search, which belongs to one of its orders; and an unknown kind, platform or category.
    names_something = not {"kind", "platform", "category"}.isdisjoint(case.query or ())
    is_described_whole = not case.operation.body and not names_something and case.operation.path != "/api/search"
    excluded = [ignored_auth] if is_described_whole else [ignored_auth, positive_data_acceptance]
    case.validate_response(filled.stranger.request(**asked), excluded_checks=excluded)
