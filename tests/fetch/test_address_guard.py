"""Which addresses are never asked, however they are written and whoever leads there."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from catchment.errors import AddressRefused, NetworkError
from catchment.fetch.address_guard import is_own, objection
from catchment.fetch.urls import parse_url
from tests.hostile import Connection, Seen, redirect, reply, status


@pytest.mark.parametrize(
    ("address", "without", "with_private"),
    [
        ("93.184.216.34", None, None),
        ("2606:2800:220:1::1", None, None),
        ("127.0.0.1", "loopback", None),
        ("127.255.0.3", "loopback", None),
        ("::1", "loopback", None),
        ("10.1.2.3", "private", None),
        ("172.16.0.1", "private", None),
        ("172.32.0.1", None, None),
        ("192.168.1.1", "private", None),
        ("100.64.0.1", "private", None),
        ("fd12:3456::1", "private", None),
        ("169.254.169.254", "link-local or metadata", "link-local or metadata"),
        ("fe80::1%eth0", "link-local or metadata", "link-local or metadata"),
        ("fd00:ec2::254", "link-local or metadata", "link-local or metadata"),
        ("100.100.100.200", "link-local or metadata", "link-local or metadata"),
        ("168.63.129.16", "link-local or metadata", "link-local or metadata"),
        ("0.0.0.0", "reserved", "reserved"),
        ("::", "reserved", "reserved"),
        ("224.0.0.1", "reserved", "reserved"),
        ("ff02::1", "reserved", "reserved"),
        ("240.0.0.1", "reserved", "reserved"),
        ("255.255.255.255", "reserved", "reserved"),
        ("192.0.2.7", "reserved", "reserved"),
        ("2001:db8::1", "reserved", "reserved"),
        # An IPv4 address inside an IPv6 one: mapped, compatible, NAT64, 6to4, Teredo
        ("::ffff:127.0.0.1", "loopback", None),
        ("::ffff:169.254.169.254", "link-local or metadata", "link-local or metadata"),
        ("::ffff:93.184.216.34", None, None),
        ("::7f00:1", "loopback", None),
        ("64:ff9b::10.0.0.1", "private", None),
        ("64:ff9b::a9fe:a9fe", "link-local or metadata", "link-local or metadata"),
        ("64:ff9b::5db8:d822", None, None),
        ("2002:7f00:1::1", "loopback", None),
        ("2002:a9fe:a9fe::1", "link-local or metadata", "link-local or metadata"),
        ("2001:0:0:0:0:0:80ff:fffe", "loopback", None),
    ],
)
def test_an_address_is_judged_by_where_it_really_leads(address, without, with_private):
    assert (objection(address, False), objection(address, True)) == (without, with_private)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.1",
        "[::ffff:127.0.0.1]",
        "[::1]",
        "１２７.0.0.1",
    ],
)
def test_this_machine_is_not_asked_however_it_is_written(new_door, server, host):
    door = new_door(allow_private_networks=False)
    server.on("/", reply())
    with pytest.raises(AddressRefused, match=r"loopback.*CATCHMENT_ALLOW_PRIVATE_NETWORKS") as caught:
        door.ask(f"http://{host}:{server.port}/")
    assert "a source (source 1)" in str(caught.value)
    assert (server.connections, door.outcomes) == (0, ["ADDRESS_REFUSED"])


@pytest.mark.parametrize("host", ["169.254.169.254", "[fe80::1]", "[fd00:ec2::254]", "0.0.0.0", "[::]"])
def test_metadata_is_not_asked_even_where_private_networks_are(door, host):
    with pytest.raises(AddressRefused):
        door.ask(f"http://{host}/latest/meta-data")


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "ftp://example.org/", "gopher://example.org/", "example.org", ""]
)
def test_only_http_is_spoken(door, url):
    with pytest.raises(AddressRefused, match="only http"):
        door.ask(url)
    assert door.attempts == []


@pytest.mark.parametrize(
    "url",
    [
        "http://a:0/",
        "http://a:65536/",
        "http://a:-1/",
        "http://a:8o/",
        "http://a/" + "a" * 8000,
        "http://a\x1b[31m/",
        "http://a b/",
        "http://a%00b/",
        "http://a\\b/",
    ],
)
def test_hosts_ports_and_lengths_that_cannot_be_are_refused_before_anybody_is_asked(door, url):
    with pytest.raises(AddressRefused):
        door.ask(url)
    assert door.attempts == []


@pytest.mark.parametrize("url", ["http://", "http://[::1", "http://a:99999/", "http://\u2488com.example..org/"])
def test_nonsense_is_refused_before_anything_is_sent(door, url):
    with pytest.raises((AddressRefused, NetworkError)):
        door.ask(url, timeout_seconds=1.0)


def test_a_login_in_an_address_is_refused_and_not_shown(door):
    with pytest.raises(AddressRefused, match="credential") as caught:
        door.ask("http://user:hunter2@127.0.0.1/")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[fe80::1]/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:70/_x",
        "http://user:hunter2@127.0.0.1/",
        "//0.0.0.0/",
    ],
)
def test_a_redirect_cannot_lead_where_a_request_may_not_go(door, server, to):
    with pytest.raises(AddressRefused) as caught:
        door.ask(server.on("/", redirect(to)))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "localhost", "2130706433"])
def test_a_redirect_from_an_operators_address_is_guarded(new_door, server, host):
    door = new_door(allow_private_networks=False, base_urls={"somewhere": server.url})
    door.platform.HOSTS = ("example.org",)
    server.on("/end", reply())
    server.on("/", redirect(f"http://{host}:{server.port + 1}/end"))
    with pytest.raises(AddressRefused, match="loopback"):
        door.ask("https://example.org/")


def test_a_connection_of_the_operators_serves_no_one_else(new_door, server):
    # Without care the open connection would be used again, and the guard, which sees new ones only, never asked.
    door = new_door(allow_private_networks=False, base_urls={"somewhere": server.url})
    door.platform.HOSTS = ("example.org",)
    server.on("/", reply())
    assert door.ask("https://example.org/").status == 200
    with pytest.raises(AddressRefused):
        door.ask(server.url + "/")
    assert len(server.seen) == 1


def test_behind_a_proxy_the_target_is_judged_as_well(new_door, server):
    door = new_door(allow_private_networks=False, proxy=server.url)
    server.on("http://93.184.216.34/page", reply(b"by proxy"))
    assert door.ask("http://93.184.216.34/page").body == b"by proxy"
    for host in ("127.0.0.1", "169.254.169.254", "localhost", "2130706433"):
        with pytest.raises(AddressRefused):
            door.ask(f"http://{host}/page")
    assert len(server.seen) == 1


def rebinding(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> None:
    """A name that has one address when it is first looked up, and another one at each further time."""
    answers = iter(addresses)
    real = socket.getaddrinfo

    def look_up(host: str, *more: Any, **named: Any) -> Any:
        return real(next(answers) if host == "rebinding.example" else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)


def tunnel(connection: Connection, seen: Seen) -> bool:
    """What a proxy does that opens a tunnel. This server is also what stands at its other end."""
    connection.send(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return True


def test_a_proxy_is_given_the_address_that_was_judged_with_the_name_in_the_request(new_door, server, monkeypatch):
    rebinding(monkeypatch, "93.184.216.34", "127.0.0.1")
    door = new_door(allow_private_networks=False, proxy=server.url)
    server.on("93.184.216.34:80", tunnel)
    server.on("/page", reply(b"by tunnel"))
    assert door.ask("http://rebinding.example/page").body == b"by tunnel"
    assert [(request.method, request.path) for request in server.seen] == [
        ("CONNECT", "93.184.216.34:80"),
        ("GET", "/page"),
    ]
    assert server.seen[1].headers["host"] == "rebinding.example"
    # By now the name leads to this machine.
    with pytest.raises(AddressRefused, match="loopback"):
        door.ask("http://rebinding.example/page")
    assert len(server.seen) == 2


def test_a_tunnel_to_one_address_is_not_used_for_the_next(new_door, server, monkeypatch):
    rebinding(monkeypatch, "93.184.216.34")
    door = new_door(allow_private_networks=False, proxy=server.url)
    server.on("93.184.216.34:80", tunnel)
    server.on("/page", reply(b"by tunnel"))
    server.on("http://93.184.216.35/other", reply(b"by its own address"))
    server.on("93.184.216.35:80", tunnel)
    server.on("/other", reply(b"by its own address"))
    door.ask("http://rebinding.example/page")
    assert door.ask("http://93.184.216.35/other").body == b"by its own address"
    assert "93.184.216.34" not in "".join(seen.path for seen in server.seen[2:])


def test_a_secure_request_through_a_proxy_is_tunnelled_to_the_address_that_was_judged(new_door, server, monkeypatch):
    rebinding(monkeypatch, "2606:2800:220:1:248:1893:25c8:1946")
    door = new_door(allow_private_networks=False, proxy=server.url, retry_waits=())
    server.on("[2606:2800:220:1:248:1893:25c8:1946]:443", status(403))
    with pytest.raises(NetworkError, match=r"the proxy refused a tunnel to rebinding\.example"):
        door.ask("https://rebinding.example/page")
    assert [request.path for request in server.seen] == ["[2606:2800:220:1:248:1893:25c8:1946]:443"]


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://Example.ORG", "http://example.org/"),
        ("http://example.org/a b?q=ü#part", "http://example.org/a%20b?q=%C3%BC"),
        ("https://bücher.example/ä", "https://xn--bcher-kva.example/%C3%A4"),
        ("https://例え.テスト/", "https://xn--r8jz45g.xn--zckzah/"),
        ("http://example.org:8080/a%20b?x=%26&y", "http://example.org:8080/a%20b?x=%26&y"),
        ("  http://[::1]:80/\n", "http://[::1]:80/"),
    ],
)
def test_addresses_are_brought_into_the_form_that_is_sent(url, place):
    assert parse_url(url).url == place


def test_own_machines_are_known_by_their_address():
    assert [is_own(host) for host in ("localhost", "127.0.0.1", "[::1]", "10.0.0.8", "example.org", "8.8.8.8")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip
