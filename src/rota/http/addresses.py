"""Which addresses, ports and names may be called: those of the public internet, and what the operator allows."""

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

WEB_PORTS = frozenset({80, 443})
SERVICE_PORTS = (
    frozenset({1433, 1521, 1883, 2049, 2181, 2375, 2376, 2379, 2380, 3306, 3389, 4369, 5432, 5671, 5672, 5900, 5984})
    | {6000, 6379, 6380, 6443, 7000, 7001, 9042, 9092, 9200, 9300, 10250, 10255, 11211, 15672, 25672, 26379}
    | {27017, 27018, 50000}
)
"""Ports over 1023 on which something else than a web server usually listens."""

_NAT64 = IPv6Network("64:ff9b::/96")
_UNICAST = IPv6Network("2000::/3")
_PROTOCOLS = IPv4Network("192.0.0.0/24")  # for protocols between machines; parts of it pass for global
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
_LONGEST_NAME = 253


def literal(host: str) -> Address | None:
    """Return the address that a host is, in its usual form; None for a name."""
    try:
        return ip_address(host)
    except ValueError:
        return None


def name_problem(host: str) -> str | None:
    """Say what is wrong with the name of a host, if anything is.

    What ends in a number is an address in disguise: 127.1, 2130706433, 0x7f.1 and 0177.0.0.1 are all this machine.
    """
    labels = host.split(".")
    if not host or len(host) > _LONGEST_NAME or not all(map(_LABEL.fullmatch, labels)):
        return "is not the name of a host"
    return "is an address in disguise" if _NUMBER.fullmatch(labels[-1]) else None


def port_allowed(port: int) -> bool:
    """Tell whether a web server may be looked for there."""
    return port in WEB_PORTS or (1024 <= port <= 65_535 and port not in SERVICE_PORTS)


def address_allowed(address: Address, networks: Iterable[Network] = ()) -> bool:
    """Tell whether an address may be called: a public one, or one in a network that the operator allows."""
    inner = _inner(address)
    return _is_public(inner) or any(inner in network for network in networks if network.version == inner.version)


def read_networks(texts: Iterable[str]) -> list[Network]:
    """Read networks such as 10.0.0.0/8; raises ValueError."""
    return [ip_network(text) for text in texts]


def _inner(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 one leads to: mapped, by 6to4, or by NAT64."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _is_public(address: Address) -> bool:
    if not address.is_global or address.is_multicast:
        return False
    return address not in _PROTOCOLS if isinstance(address, IPv4Address) else address in _UNICAST
