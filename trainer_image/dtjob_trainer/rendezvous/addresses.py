"""Addresses: whether a host name leads to where a task registered from."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket

_SIDECAR = ", as by way of a service mesh's sidecar: keep that out of the job's pods"
"""Istio's connects to its pod's ports from 127.0.0.6, and from 127.0.0.1 to those that a Service names."""


def same_address(one: str, other: str) -> bool:
    """Whether both texts name one IP address; an IPv4 address mapped into IPv6 is that IPv4 address."""
    return plain(one) == plain(other)


def name_problem(host: str, addresses: list[str], registered_from: str) -> str | None:
    """What is wrong with a host name that resolves to `addresses`, for a task that registered from another one."""
    if any(same_address(address, registered_from) for address in addresses):
        return None
    problem = f"its name {host} resolves to {', '.join(addresses)}, but it registered from {registered_from}"
    return f"{problem}{_SIDECAR}" if _is_loopback(registered_from) else problem


def _is_loopback(address: str) -> bool:
    with contextlib.suppress(ValueError):
        return ipaddress.ip_address(plain(address)).is_loopback
    return False


async def look_up(host: str) -> list[str]:
    """The addresses to which `host` leads. Raises OSError or UnicodeError where there are none."""
    # In a thread of its own: a slow name server must not hold up the event loop.
    found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return sorted({str(entry[4][0]) for entry in found})


def plain(text: str) -> str:
    """The address in one form; an IPv4 address mapped into IPv6 is that IPv4 address."""
    with contextlib.suppress(ValueError):
        address = ipaddress.ip_address(text.partition("%")[0])
        if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped:
            return str(address.ipv4_mapped)
        return str(address)
    return text
