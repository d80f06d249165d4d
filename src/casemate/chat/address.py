"""Which network addresses must never be asked for an answer. Pure."""

from __future__ import annotations

import ipaddress

_METADATA = frozenset(
    map(
        ipaddress.ip_address,
        # services of clouds that hand out credentials and are not in a link-local range:
        # EC2 over IPv6, Alibaba, Azure, Oracle
        ("fd00:ec2::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    )
)
_WITH_IPV4_AT_THE_END = tuple(map(ipaddress.ip_network, ("::/96", "::ffff:0:0/96", "64:ff9b::/96")))
"""IPv4-compatible and IPv4-mapped (RFC 4291, 2.5.5), and NAT64 (RFC 6052)."""


def hands_out_credentials(host: str) -> bool:
    """Whether an address literal is link-local or a cloud's metadata service, in whatever form; no name is."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address):
        if any(address in network for network in _WITH_IPV4_AT_THE_END):
            address = ipaddress.IPv4Address(address.packed[-4:])
        else:
            address = address.sixtofour or address
    return address.is_link_local or address in _METADATA
