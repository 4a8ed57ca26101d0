# SPDX-License-Identifier: Apache-2.0
"""Compares the address a task registered from with the addresses its host name resolves to."""

import asyncio
import contextlib
import ipaddress
import socket

_SIDECAR = ", as by way of a service mesh's sidecar: keep that out of the job's pods"
"""Istio's sidecar connects to its pod's ports from 127.0.0.6, and from 127.0.0.1 to ports that a Service names."""


def same_address(one: str, other: str) -> bool:
    """Whether both texts name the same IP address. An IPv4 address mapped into IPv6 counts as that IPv4 address."""
    return plain(one) == plain(other)


def name_problem(host: str, addresses: list[str], registered_from: str) -> str | None:
    """Why a host name with `addresses` does not fit a task that registered from `registered_from`. None if it fits."""
    if any(same_address(address, registered_from) for address in addresses):
        return None
    problem = f"its name {host} resolves to {', '.join(addresses)}, but it registered from {registered_from}"
    return f"{problem}{_SIDECAR}" if _is_loopback(registered_from) else problem


def _is_loopback(address: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(plain(address)).is_loopback
    return False


async def look_up(host: str) -> list[str]:
    """The addresses to which `host` resolves. Raises OSError or UnicodeError if there are none."""
    # In a thread of its own, so that a slow name server does not block the event loop.
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return sorted({str(entry[4][0]) for entry in found})


def plain(text: str) -> str:
    """The address in its canonical form. An IPv4 address mapped into IPv6 becomes that IPv4 address."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(text.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(address)
    return text
