"""The API describes itself: OpenAPI with words, examples and the key; the page in docs/ says the same."""

from __future__ import annotations

from typing import Any

import pytest

from catchment import __version__
from catchment.web.app import described
from tools.docs import REPOSITORY
from tools.http import api_page


@pytest.fixture(scope="session")
def description() -> dict[str, Any]:
    return described().openapi()


def of_the_api(description: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {
        f"{method.upper()} {path}": operation
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
        if path.startswith("/api/")
    }


def test_everything_that_was_promised_is_there(description: dict[str, Any]) -> None:
    assert set(of_the_api(description)) == {
        "GET /api/collector/status",
        "GET /api/sessions",
        "DELETE /api/sessions/{session_id}",
        "GET /api/sources",
        "POST /api/sources",
        "GET /api/sources/{source_id}",
        "PATCH /api/sources/{source_id}",
        "DELETE /api/sources/{source_id}",
        "POST /api/sources/{source_id}/pause",
        "POST /api/sources/{source_id}/resume",
        "POST /api/sources/{source_id}/run",
        "GET /api/items",
        "GET /api/items/{item_id}",
        "GET /api/items/{item_id}/revisions",
        "GET /api/items/{item_id}/counters",
        "GET /api/items/{item_id}/replies",
        "GET /api/search",
        "GET /api/changes",
        "GET /api/raw-items",
        "GET /api/raw-items/stats",
        "GET /api/raw-items/for-digest",
        "GET /api/gaps",
        "GET /api/gaps/{gap_id}/repairs",
        "GET /api/missing-replies",
        "GET /api/runs",
        "GET /api/runs/{run_id}",
        "GET /api/metrics",
        "GET /api/plan",
        "GET /api/spending",
        "GET /api/alerts",
        "GET /api/credentials",
        "GET /api/credentials/{credential_id}",
        "POST /api/credentials/{credential_id}/pause",
        "POST /api/credentials/{credential_id}/resume",
        "GET /api/watches",
        "POST /api/watches",
        "GET /api/watches/{watch_id}",
        "DELETE /api/watches/{watch_id}",
        "GET /api/watches/{watch_id}/hits",
        "POST /api/watches/{watch_id}/pause",
        "POST /api/watches/{watch_id}/resume",
        "GET /api/webhooks",
        "POST /api/webhooks",
        "GET /api/webhooks/{webhook_id}",
        "DELETE /api/webhooks/{webhook_id}",
        "POST /api/webhooks/{webhook_id}/pause",
        "POST /api/webhooks/{webhook_id}/resume",
        "POST /api/webhooks/{webhook_id}/test",
        "GET /api/audits",
        "POST /api/audits",
        "GET /api/audits/{audit_id}",
        "GET /api/audits/{audit_id}/threads/{thread_id}/floors",
        "GET /api/audits/{audit_id}/gap-repairs",
        "GET /api/runs/{run_id}/threads",
        "GET /api/sources/{source_id}/board-runs",
        "GET /api/tasks",
        "GET /api/tasks/{task_id}",
        "POST /api/tasks/{task_id}/cancel",
        "POST /api/admin/scrape",
        "GET /api/admin/scrape/{task_id}",
        "POST /api/admin/scrape/{task_id}/cancel",
        "GET /api/notifications",
        "POST /api/notifications",
        "GET /api/notifications/{notification_id}",
        "DELETE /api/notifications/{notification_id}",
        "POST /api/notifications/{notification_id}/pause",
        "POST /api/notifications/{notification_id}/resume",
        "POST /api/notifications/{notification_id}/test",
        "GET /api/sources/{source_id}/coverage",
        "GET /api/tiers",
        "GET /api/settings/intervals",
        "PUT /api/settings/intervals/{kind}",
        "GET /api/hot",
        "GET /api/hot/{source_id}",
        "POST /api/forget",
        "GET /api/forgotten",
    }
    assert description["info"]["version"] == __version__


def test_every_operation_says_what_it_does_what_it_answers_and_that_it_needs_a_key(description: dict[str, Any]) -> None:
    assert set(description["components"]["securitySchemes"]) == {"Bearer", "X-API-Key"}
    for name, operation in of_the_api(description).items():
        assert operation["description"], name
        assert {"Bearer": []} in operation["security"], name
        assert {"400", "401", "500", "503"} <= operation["responses"].keys(), name
        good = next(answer for status, answer in operation["responses"].items() if status.startswith("2"))
        assert name.startswith("DELETE") or "$ref" in good["content"]["application/json"]["schema"], name


def test_failures_are_described_as_they_are(description: dict[str, Any]) -> None:
    answers = [route["responses"] for route in of_the_api(description).values()]
    assert not [answer for answer in answers if "422" in answer]
    schemas = {
        answer["content"]["application/json"]["schema"]["$ref"]
        for statuses in answers
        for status, answer in statuses.items()
        if not status.startswith("2")
    }
    assert schemas == {"#/components/schemas/Failed"}


def test_what_is_sent_and_what_is_most_asked_for_has_an_example(description: dict[str, Any]) -> None:
    schemas = description["components"]["schemas"]
    for name in (
        "NewSource",
        "ChangedSource",
        "Pause",
        "SourceSchema",
        "CollectorStatus",
        "ItemSchema",
        "Failed",
        "Health",
        "NewWatch",
        "NewWebhook",
    ):
        assert schemas[name]["examples"], name


def test_the_page_in_docs_is_up_to_date() -> None:
    assert (REPOSITORY / "docs" / "api.md").read_text(encoding="utf-8") == api_page(), "run `make docs`"
