"""An app with its HTTP server, and clients: with an API key, without one, a browser."""

from __future__ import annotations

import atexit
import re
import warnings
from functools import cache
from threading import Event, Thread
from typing import Any

import anyio
from anyio.from_thread import BlockingPortal

from catchment.web.app import application
from catchment.web.dependencies import open_web_context
from catchment.web.middleware import hosts_for
from tests.town import TownApp

with warnings.catch_warnings():
    # Starlette would like another client; the one we have does.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


@cache
def portal() -> BlockingPortal:
    """An event loop for all callers of this process: without one, a client starts two threads for each request."""
    found: list[BlockingPortal] = []
    is_ready = Event()

    async def run() -> None:
        async with BlockingPortal() as portal:
            found.append(portal)
            is_ready.set()
            await portal.sleep_until_stopped()

    thread = Thread(target=anyio.run, args=(run,), daemon=True)
    thread.start()
    is_ready.wait()

    def stop() -> None:
        found[0].start_task_soon(found[0].stop)
        thread.join(10)

    atexit.register(stop)
    return found[0]


class Desk:
    """The API of an app with a town's feeds, in process."""

    def __init__(self, here: TownApp, *, host: str = "127.0.0.1", collects: bool = True, **more: Any) -> None:
        self.here = here
        self.context = open_web_context(here.app, collects=collects, **more)
        self.key = self.context.keys.first(here.clock.now())
        self.app = application(self.context, hosts_for(host))
        self.stranger = self.caller()
        self.client = self.caller({"Authorization": f"Bearer {self.key}"})

    def caller(
        self,
        headers: dict[str, str] | None = None,
        base_url: str = "http://127.0.0.1:8700",
        address: str = "127.0.0.1",
    ) -> TestClient:
        client = (address, 50_000)
        found = TestClient(self.app, base_url=base_url, headers=headers, follow_redirects=False, client=client)
        found.portal = portal()
        return found

    def browser(self, language: str = "en") -> TestClient:
        """Somebody who came by the link."""
        found = self.caller({"Accept": "text/html", "Accept-Language": language})
        assert found.get("/login", params={"token": self.context.sessions.token}).status_code == 303
        return found

    def get(self, path: str, **params: Any) -> Any:
        answer = self.client.get(path, params=params)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, path: str, body: Any = None, *, status: int = 200) -> Any:
        answer = self.client.post(path, json=body) if body is not None else self.client.post(path)
        assert answer.status_code == status, answer.text
        return answer.json()

    def pages(self, path: str, **params: Any) -> list[list[dict[str, Any]]]:
        """All pages of a list, following `next` to the end."""
        found, after = [], None
        while True:
            page = self.get(path, **params, **({"after": after} if after else {}))
            found.append(page["items"])
            after = page["next"]
            if after is None:
                return found


def operations(desk: Desk) -> list[tuple[str, str]]:
    """Every documented operation below /api, with numbers where ids go."""
    paths = desk.get("/openapi.json")["paths"]
    return [
        (method.upper(), re.sub("{[a-z]+_id}", "1", path))
        for path, methods in paths.items()
        for method in methods
        if path.startswith("/api/")
    ]
