"""The notifications page: notifications, webhooks and Python hooks, with the progress of each."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import APIRouter, Response

from catchment.app import App
from catchment.errors import CatchmentError, InvalidInput
from catchment.events import notifications as notification_events
from catchment.model import Severity
from catchment.web.api.params import NotificationId
from catchment.web.dependencies import AppDep
from catchment.web.pages.render import Reader, redirect, render
from catchment.web.pages.session import TheForm, TheReader

router = APIRouter()

_EVENTS = {"alerts": ("alert.opened", "alert.closed"), "watches": ("watch.matched",)}
"""What can be ticked, and the events that it means."""
_DEFAULTS = {"name": "", "severity": "", "language": "en", "alerts": "1", "watches": "1"}


@router.get("/notifications")
def notifications(app: AppDep, reader: TheReader) -> Response:
    return _page(app, reader, _DEFAULTS | {"language": reader.language})


@router.post("/notifications")
def add_notification(app: AppDep, form: TheForm) -> Response:
    reader = form.reader.replace(path="/notifications")
    try:
        events = [event for ticked, names in _EVENTS.items() if form[ticked] for event in names]
        if not events:
            raise InvalidInput("nothing is selected", "select alerts or matches of watches", "events")
        notification_events.add(
            app.store.webhooks,
            app.cipher,
            form["name"],
            form["url"],
            app.clock.now(),
            events=events,
            least_severity=Severity(form["severity"]) if form["severity"] in [*Severity] else None,
            language=form["language"] or "en",
        )
    except CatchmentError as error:
        # The address is not shown again, not even a wrong one: it may hold a token.
        values = {name: form[name] for name in _DEFAULTS}
        return _page(app, reader, values, error=error)
    return redirect("/notifications?done=notification_added")


def _page(app: App, reader: Reader, values: Mapping[str, str], *, error: CatchmentError | None = None) -> Response:
    return render(
        "notifications.html",
        reader,
        200 if error is None else 400 if isinstance(error, InvalidInput) else 409,
        rows=app.store.deliveries.page(),
        values=values,
        severities=[*Severity],
        error=str(error) if error else None,
        error_words=reader.locale.form_error(error) if error else None,
        wrong_field=getattr(error, "field", None),
    )


@router.post("/notifications/{notification_id}/test")
def test_notification(app: AppDep, notification_id: NotificationId, form: TheForm) -> Response:
    """Send a test message now."""
    reader = form.reader.replace(path="/notifications")
    app.store.deliveries.of_webhook(notification_id, is_notification=True)
    try:
        notification_events.send_test(app.notification(notification_id), app.clock.now())
    except CatchmentError as error:
        return _page(app, reader, _DEFAULTS, error=error)
    return redirect("/notifications?done=notification_tested")


@router.post("/notifications/{notification_id}/pause")
def pause_notification(app: AppDep, notification_id: NotificationId, form: TheForm) -> Response:
    app.store.deliveries.switch(notification_id, app.clock.now(), is_on=False, is_notification=True)
    return redirect("/notifications?done=notification_paused")


@router.post("/notifications/{notification_id}/resume")
def resume_notification(app: AppDep, notification_id: NotificationId, form: TheForm) -> Response:
    app.store.deliveries.switch(notification_id, app.clock.now(), is_on=True, is_notification=True)
    return redirect("/notifications?done=notification_resumed")


@router.post("/notifications/{notification_id}/remove")
def remove_notification(app: AppDep, notification_id: NotificationId, form: TheForm) -> Response:
    app.store.webhooks.remove(notification_id, app.clock.now(), is_notification=True)
    return redirect("/notifications?done=notification_removed")
