"""Redirects: where they lead, what goes along, what is remembered."""

from __future__ import annotations

import pytest

from catchment.credentials.secret import Secret
from catchment.errors import AddressRefused, Unreadable
from catchment.fetch.urls import RedirectRules, Step, next_step, parse_url, without_params
from tests.hostile import redirect, reply, status

WAY = RedirectRules(None, (), {}, parse_url("https://example.org/"))
SECRET_WAY = WAY.replace(secret_params={"key": "s3cret"})


def step_at(url: str, method: str = "GET", body: bytes | None = None, way: RedirectRules = WAY, **headers: str) -> Step:
    return way.step(parse_url(url), method, headers, body)


@pytest.mark.parametrize(
    ("codes", "is_moved"),
    [
        ((301,), True),
        ((308,), True),
        ((301, 308), True),
        ((302,), False),
        ((303,), False),
        ((307,), False),
        ((301, 302), False),
        ((307, 301), False),
    ],
)
def test_only_a_chain_of_permanent_redirects_moves_a_source(door, server, codes, is_moved):
    for number, code in enumerate(codes):
        server.on(f"/{number}", redirect(f"/{number + 1}", code))
    end = server.on(f"/{len(codes)}", reply())
    answer = door.ask(f"{server.url}/0")
    assert (answer.url, answer.moved_to) == (end, end if is_moved else None)
    assert door.outcomes == [*map(str, codes), "200"]


def test_circles_end(door, server):
    server.on("/b", redirect("/a"))
    with pytest.raises(AddressRefused, match="in a loop"):
        door.ask(server.on("/a", redirect("/b")))
    assert len(server.seen) == 2


def test_a_form_answered_by_a_redirect_to_its_own_address_is_no_circle(door, server):
    url = server.on("/", redirect("/", 303), reply(b"done"))
    assert door.ask(url, method="POST", body=b"form").body == b"done"


def test_long_chains_end(new_door, server):
    door = new_door(max_redirects=3)
    for number in range(5):
        server.on(f"/{number}", redirect(f"/{number + 1}"))
    with pytest.raises(AddressRefused, match="more than 3 redirects"):
        door.ask(f"{server.url}/0")
    assert len(server.seen) == 4


@pytest.mark.parametrize(
    "to", ["http://[", "//[::1", "http://a:b/", "http://127.0.0.1:0/", "/" + "a" * 9000, "http://\x1b[31mevil\x07/"]
)
def test_a_redirect_to_nonsense_is_refused(door, server, to):
    with pytest.raises(AddressRefused, match=r"a source \(source 1\)"):
        door.ask(server.on("/", redirect(to)))
    assert len(door.attempts) == 1


def test_a_redirect_to_nowhere_is_unreadable(door, server):
    with pytest.raises(Unreadable, match="without a target"):
        door.ask(server.on("/", status(302)))


@pytest.mark.parametrize(
    ("code", "method", "then"),
    [
        (303, "POST", "GET"),
        (302, "POST", "GET"),
        (301, "POST", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (302, "HEAD", "HEAD"),
        (303, "GET", "GET"),
    ],
)
def test_the_method_follows_the_rules(door, server, code, method, then):
    server.on("/end", reply())
    door.ask(server.on("/", redirect("/end", code)), method=method, body=b"form" if method == "POST" else None)
    assert [(seen.method, seen.body) for seen in server.seen] == [
        (method, b"form" if method == "POST" else b""),
        (then, b"form" if then == "POST" else b""),
    ]


def test_after_another_method_a_handle_asks_plainly_again(door, server):
    url = server.on("/", reply())
    for method, body in (("POST", b"form"), ("GET", None), ("HEAD", None), ("GET", None), ("PUT", b"x"), ("GET", None)):
        door.ask(url, method=method, body=body)
    assert [seen.method for seen in server.seen] == ["POST", "GET", "HEAD", "GET", "PUT", "GET"]
    assert [seen.body for seen in server.seen] == [b"form", b"", b"", b"", b"x", b""]


def test_a_target_in_raw_utf_8_is_understood(door, server):
    server.on("/%C3%BC", reply(b"found"))
    assert door.ask(server.on("/", redirect("/ü".encode().decode("latin-1")))).body == b"found"


def test_https_never_becomes_http():
    with pytest.raises(AddressRefused, match="from https to http"):
        next_step(step_at("https://example.org/"), 301, "http://example.org/", WAY)
    assert next_step(step_at("http://example.org/"), 301, "https://example.org/", WAY).place.scheme == "https"


def test_a_form_is_not_sent_on_to_another_host():
    with pytest.raises(AddressRefused, match=r"redirects a POST request to other\.example"):
        next_step(step_at("https://example.org/", "POST", b"form"), 307, "https://other.example/", WAY)


@pytest.mark.parametrize(
    ("origin", "location", "keeps"),
    [
        ("https://example.org/a", "/b", True),
        ("http://example.org/a", "https://example.org/b", True),
        ("https://example.org/a", "https://example.org:443/b", True),
        ("https://example.org/a", "https://example.org:8443/b", False),
        ("https://example.org/a", "https://www.example.org/b", False),
        ("https://example.org/a", "https://example.org.evil.example/b", False),
    ],
)
def test_only_the_same_host_sees_the_credential(origin, location, keeps):
    way = SECRET_WAY.replace(owner=parse_url(origin))
    step = step_at(f"{origin}?key=s3cret", Authorization="Bearer s3cret", Cookie="s3cret", Accept="text/xml")
    after = next_step(step, 302, location, way)
    assert after.headers == (step.headers if keeps else {"Accept": "text/xml"})
    assert ("s3cret" in after.place.url) == keeps
    assert "s3cret" not in without_params(after.place.url, way.secret_params)


def test_a_server_that_passes_the_key_on_does_not_make_us_leak_it():
    way = SECRET_WAY
    after = next_step(step_at("https://a.example/?key=s3cret"), 302, "https://b.example/?page=2&key=s3cret", way)
    assert after.place.url == "https://b.example/?page=2"


def test_a_credential_does_not_come_back_with_a_second_redirect():
    there = next_step(step_at("https://a.example/", Authorization="s3cret"), 302, "https://b.example/", WAY)
    assert next_step(there, 302, "https://a.example/", WAY).headers == {}


def test_over_the_wire_the_other_host_sees_no_secret(door, server):
    # 127.0.0.1 and localhost are one machine and two hosts.
    door.secrets["login"] = Secret("user:pass", {"X-API-Key": "k3y"}, {"token": "t0ken"}, "session=c00kie")
    server.on("/end", reply())
    url = server.on("/", redirect(f"http://localhost:{server.port}/end?token=t0ken&page=2"))
    answer = door.ask(url, credential="login", params={"q": "words"})
    first, second = server.seen
    assert first.path == "/?q=words&token=t0ken"
    assert first.headers["authorization"] == "Basic dXNlcjpwYXNz"
    assert (first.headers["x-api-key"], first.headers["cookie"]) == ("k3y", "session=c00kie")
    assert second.path == "/end?page=2"
    assert not {"authorization", "x-api-key", "cookie"} & second.headers.keys()
    assert answer.url == f"http://localhost:{server.port}/end?page=2"


def test_a_stranger_that_redirects_to_itself_still_sees_no_secret(door, server):
    door.secrets["login"] = Secret(query={"token": "t0ken"})
    stranger = f"http://localhost:{server.port}"
    server.on("/b1", redirect(f"{stranger}/b2"))
    server.on("/b2", redirect(f"{server.url}/home"))
    server.on("/home", reply())
    door.ask(server.on("/", redirect(f"{stranger}/b1")), credential="login")
    paths = [(seen.headers["host"].partition(":")[0], seen.path) for seen in server.seen]
    assert paths == [
        ("127.0.0.1", "/?token=t0ken"),
        ("localhost", "/b1"),
        ("localhost", "/b2"),
        ("127.0.0.1", "/home?token=t0ken"),
    ]


def test_on_the_same_host_the_credential_goes_along_and_is_not_shown(door, server):
    door.secrets["login"] = Secret(query={"token": "t0ken"})
    server.on("/end", reply())
    answer = door.ask(server.on("/", redirect("/end?page=2", 301)), credential="login")
    assert server.seen[1].path == "/end?page=2&token=t0ken"
    assert (answer.url, answer.moved_to) == (f"{server.url}/end?page=2",) * 2


def test_a_base_url_stands_in_for_the_platforms_hosts(new_door, server):
    door = new_door(base_urls={"somewhere": f"{server.url}/stand-in/"}, allow_private_networks=False)
    door.platform.HOSTS = ("api.example.org", "www.example.org")
    server.on("/stand-in/items", redirect("https://www.example.org/there", 301))
    server.on("/stand-in/there", redirect(f"{server.url}/stand-in/end", 301))
    server.on("/stand-in/end", reply())
    answer = door.ask("https://api.example.org/items", params={"page": "2"})
    assert [seen.path for seen in server.seen] == ["/stand-in/items?page=2", "/stand-in/there", "/stand-in/end"]
    # What is kept is the platform's own address, whoever served it.
    assert (answer.url, answer.moved_to) == ("https://www.example.org/end",) * 2


def test_a_base_url_stands_in_for_every_host_of_a_platform_without_its_own(new_door, server):
    door = new_door(base_urls={"somewhere": server.url}, allow_private_networks=False)
    server.on("/feed", reply(b"of the stand-in"))
    answer = door.ask("https://blog.example/feed")
    assert (answer.body, answer.url) == (b"of the stand-in", "https://blog.example/feed")


def test_other_hosts_are_not_replaced(new_door, server):
    door = new_door(base_urls={"somewhere": "http://127.0.0.1:1", "elsewhere": "http://127.0.0.1:2"})
    door.platform.HOSTS = ("example.org",)
    server.on("/", reply(b"itself"))
    assert door.ask(server.url + "/").body == b"itself"
