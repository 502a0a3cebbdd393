"""The API keeps what its description promises, whatever it is asked: schemathesis asks everything that the description
allows and much that it does not, and compares every answer with it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.fernet import Fernet
from fastapi.routing import APIRoute
from hypothesis import HealthCheck, settings

from catchment.errors import Missing
from catchment.web.api import health
from catchment.web.app import GUARDED, described
from tests.town import TownApp
from tests.web.desk import Desk

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import BaseSchema

pytestmark = pytest.mark.long

OPERATIONS = [
    f"{method} {route.path}"
    for router in (*GUARDED, health.router)
    for route in router.routes
    if isinstance(route, APIRoute) and route.include_in_schema
    for method in sorted(route.methods)
]


@pytest.fixture(scope="session")
def description() -> BaseSchema:
    # Not at the top: every worker loads all tests, and schemathesis, which needs seconds to read the API, is for these.
    import schemathesis

    schema = schemathesis.openapi.from_dict(described().openapi())
    # Who has no key, or a wrong one, is the subject of test_api_keys: here everybody has the right one.
    schema.config.generation.with_security_parameters = False
    return schema


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


def test_every_operation_of_the_description_is_asked(description: BaseSchema) -> None:
    assert sorted(operation.ok().label for operation in description.get_all_operations()) == sorted(OPERATIONS)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_answer_is_one_that_was_promised(operation: str, filled: Desk, description: BaseSchema) -> None:
    from schemathesis.checks import ignored_auth, load_all_checks, positive_data_acceptance
    from schemathesis.pytest.lazy import get_all_tests

    @settings(
        max_examples=5,
        derandomize=True,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.filter_too_much],
    )
    def ask(case: Case) -> None:
        asked = case.as_transport_kwargs(base_url="http://127.0.0.1:8700", headers={"X-API-Key": filled.key})
        del asked["cookies"]
        if "data" in asked:
            asked["content"] = asked.pop("data")
        # What a body asks for may make no sense for more reasons than a description can tell: there is no such
        # credential. So may the place in a search, which belongs to one of its orders; and an unknown kind, platform or
        # category.
        names_something = not {"kind", "platform", "category"}.isdisjoint(case.query or ())
        is_described_whole = not case.operation.body and not names_something and case.operation.path != "/api/search"
        excluded = [ignored_auth] if is_described_whole else [ignored_auth, positive_data_acceptance]
        case.validate_response(filled.stranger.request(**asked), excluded_checks=excluded)

    load_all_checks()
    schema = description.include(name=operation)
    (found,) = get_all_tests(schema=schema, test_func=ask, settings=None, given_kwargs=None)
    _, test = found.ok()
    test()
