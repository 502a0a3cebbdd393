"""Where a redirect leads, and what may be taken along. Pure."""

from __future__ import annotations

from catchment.errors import AddressRefused
from catchment.fetch.urls import Place, Route, led_to, placed, routed, with_params, without_params
from catchment.model import Record

REDIRECTS = frozenset((301, 302, 303, 307, 308))
PERMANENT = frozenset((301, 308))
_KEEPS_METHOD = frozenset((307, 308))
_HARMLESS_HEADERS = frozenset(
    ("accept", "accept-language", "content-type", "if-modified-since", "if-none-match", "user-agent")
)
"""What another host may see. Everything else might be a secret under a name that nobody thought of."""


class Way(Record, frozen=True):
    """What holds for all steps of one request."""

    base_url: str | None
    hosts: tuple[str, ...]
    secret_params: dict[str, str]
    """What a credential added to the query."""

    def shown(self, place: Place) -> str:
        """The address as others may see it."""
        return without_params(place.url, self.secret_params)


class Step(Record, frozen=True):
    """One request on the way: the first, or one that a redirect asks for."""

    place: Place
    route: Route
    method: str
    headers: dict[str, str]
    body: bytes | None
    is_permanent: bool = True
    """Every redirect up to here was a permanent one."""


def next_step(step: Step, status: int, location: str, way: Way) -> Step:
    """The step that a redirect asks for. Refuses those that no honest server needs."""
    place = led_to(step.place, location, way.base_url)
    is_same_host = place.is_same_host(step.place)
    # The credential's part of the query goes along to the same host only, even if the server itself passes it on.
    shown = way.shown(place)
    place = placed(with_params(shown, way.secret_params) if is_same_host else shown)
    route = routed(place, way.base_url, way.hosts)
    if step.route.url.startswith("https:") and not route.url.startswith("https:"):
        raise AddressRefused(f"{step.place.host} redirects from https to http", "the site's operator must mend it")
    keeps_method = status in _KEEPS_METHOD or step.method == "HEAD" or (step.method == "GET" and step.body is None)
    if keeps_method and step.body is not None and not is_same_host:
        raise AddressRefused(f"{step.place.host} wants our form sent to {place.host}", "check the source's address")
    return Step(
        place=place,
        route=route,
        method=step.method if keeps_method else "GET",
        headers=step.headers if is_same_host else _harmless(step.headers),
        body=step.body if keeps_method else None,
        is_permanent=step.is_permanent and status in PERMANENT,
    )


def _harmless(headers: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() in _HARMLESS_HEADERS}
