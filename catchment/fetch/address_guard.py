"""Decides which IP addresses may be connected to. Pure.

It judges the very address that a socket is about to be opened to, so a name that resolves to a private address, a
decimal or octal spelling, a redirect and a name that changes its address between two look-ups are all one case.
"""

from __future__ import annotations

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

from catchment.messages import Message, message

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def _networks(*ranges: str) -> tuple[Network, ...]:
    return tuple(ip_network(network) for network in ranges)


_METADATA = _networks(
    "169.254.0.0/16",  # link-local, and with it the metadata service of most clouds
    "fe80::/10",
    "fd00:ec2::/32",
    "100.100.100.200/32",  # Alibaba
    "168.63.129.16/32",  # Azure: a public address that only its machines reach
)
_OWN = {
    "loopback": _networks("127.0.0.0/8", "::1/128"),
    "private": _networks(
        "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "198.18.0.0/15", "fc00::/7", "fec0::/10"
    ),
}
"""Allowed by CATCHMENT_ALLOW_PRIVATE_NETWORKS."""
_NOBODY = _networks(
    "0.0.0.0/8",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "2001:db8::/32",
    "3fff::/20",
)
_PUBLIC_IPV6 = IPv6Network("2000::/3")
_WITH_IPV4_AT_END = (IPv6Network("::ffff:0:0/96"), IPv6Network("64:ff9b::/96"), IPv6Network("::/96"))
"""Mapped, NAT64 and the abandoned "compatible" form: the last 32 bits are the IPv4 address that is meant."""
_SIX_TO_FOUR = IPv6Network("2002::/16")
_TEREDO = IPv6Network("2001::/32")


@lru_cache(maxsize=4096)
def objection(address: str, allows_private: bool) -> Message | None:
    """Returns why the address is blocked, in a word or two; None if it is allowed."""
    ip = _meant(ip_address(address.partition("%")[0]))
    if _is_in(ip, _METADATA):
        # Before the private ranges, some of which contain these: no setting allows them.
        return message("link-local or metadata")
    for kind, networks in _OWN.items():
        if _is_in(ip, networks):
            return None if allows_private else message("loopback" if kind == "loopback" else "private")
    if _is_in(ip, _NOBODY) or (ip.version == 6 and ip not in _PUBLIC_IPV6):
        return message("reserved")
    return None


@lru_cache(maxsize=4096)
def is_own(host: str) -> bool:
    """Whether a host, as written, is this machine or in its own network: such hosts need no politeness."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip = _meant(ip_address(host.strip("[]")))
    except ValueError:
        return False
    return any(_is_in(ip, networks) for networks in _OWN.values())


def _meant(ip: Address) -> Address:
    """Returns the IPv4 address inside an IPv6 one, where there is one: it is what will be reached in the end."""
    if isinstance(ip, IPv4Address) or ip == IPv6Address("::1"):
        return ip
    number = int(ip)
    if ip in _SIX_TO_FOUR:
        return IPv4Address(number >> 80 & 0xFFFFFFFF)
    if ip in _TEREDO:
        return IPv4Address(~number & 0xFFFFFFFF)
    if any(ip in network for network in _WITH_IPV4_AT_END):
        return IPv4Address(number & 0xFFFFFFFF)
    return ip


def _is_in(ip: Address, networks: tuple[Network, ...]) -> bool:
    return any(ip in network for network in networks)
