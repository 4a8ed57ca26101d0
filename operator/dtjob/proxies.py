# SPDX-License-Identifier: Apache-2.0
"""The proxy of the environment, as programs in Go read it: for the operator, the command line and the Python client."""

import contextlib
from ipaddress import ip_address, ip_network
from urllib.request import getproxies, proxy_bypass


def proxy_for(scheme: str, host: str) -> str | None:
    """The proxy for this server (HTTPS_PROXY, HTTP_PROXY), None if it has none. NO_PROXY may have networks, such as
    10.96.0.0/12, as clusters set it."""
    proxies = getproxies()
    if not host or proxy_bypass(host) or _is_in(host, proxies.get("no", "")):
        return None
    return proxies.get(scheme)


def _is_in(host: str, networks: str) -> bool:
    """Whether this is an address in one of the networks, which stand between commas."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    for network in networks.split(","):
        with contextlib.suppress(ValueError):
            if address in ip_network(network.strip(), strict=False):
                return True
    return False
