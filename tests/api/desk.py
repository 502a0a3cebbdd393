"""A shop with its HTTP door open, and callers of every sort: with a key, without, a browser."""

from __future__ import annotations

import re
import warnings
from typing import Any

from catchment.api.app import application
from catchment.api.around import hosts_for
from catchment.api.door import open_door
from tests.town import TownShop

with warnings.catch_warnings():
    # Starlette would like another client; the one we have does.
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient


class Desk:
    """The API of a town's shop, in process."""

    def __init__(self, here: TownShop, *, host: str = "127.0.0.1", collects: bool = True, **more: Any) -> None:
        self.here = here
        self.door = open_door(here.shop, collects=collects, **more)
        self.key = self.door.keys.first(here.clock.now())
        self.app = application(self.door, hosts_for(host), threads=4)
        self.stranger = self.caller()
        self.client = self.caller({"Authorization": f"Bearer {self.key}"})

    def caller(self, headers: dict[str, str] | None = None, base_url: str = "http://127.0.0.1:8700") -> TestClient:
        return TestClient(self.app, base_url=base_url, headers=headers, follow_redirects=False)

    def browser(self, language: str = "en") -> TestClient:
        """Somebody who came by the link."""
        found = self.caller({"Accept": "text/html", "Accept-Language": language})
        assert found.get("/login", params={"token": self.door.sessions.token}).status_code == 303
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
