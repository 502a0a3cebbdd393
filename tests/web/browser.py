"""What a person does in a browser: opens pages, sends forms, follows links."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from tests.web.desk import Desk


def opened(desk: Desk, path: str, *, status: int = 200, language: str = "en") -> str:
    answer = desk.browser(language).get(path)
    assert answer.status_code == status, answer.text
    return str(answer.text)


def sent(desk: Desk, path: str, *, language: str = "en", **fields: str) -> Any:
    """A form of ours, filled in and sent; fields with a dot in their name are written with two underscores."""
    browser = desk.browser(language)
    token = desk.context.sessions.token_of(browser.cookies[desk.context.sessions.cookie_name])
    return browser.post(
        path, data={name.replace("__", "."): value for name, value in fields.items()} | {"token": token}
    )


def led_to(desk: Desk, path: str, **fields: str) -> str:
    """Where a form leads to once it is sent."""
    answer = sent(desk, path, **fields)
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def links_of(page: str) -> list[str]:
    """Where one can go from here, within our own pages."""
    return [unescape(href) for href in re.findall(r'<a\b[^>]*?href="(/[^"]*)"', page)]


def plain(page: str) -> str:
    """What is read, without the markup."""
    main = page[page.index("<main") : page.index("</main>")]
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", main)).split())
