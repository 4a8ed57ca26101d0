# SPDX-License-Identifier: Apache-2.0
"""Calls between tasks go past a proxy: gRPC would ask the one that a container's variables name for them too, as it
does for whatever no_grpc_proxy or, where that is not set, no_proxy does not list."""

import contextlib
import ipaddress
from collections.abc import Iterable, Mapping

from dtjob_trainer.contract.task import host_of

PROXIES = ("grpc_proxy", "https_proxy", "http_proxy")
"""The variables in which gRPC looks for a proxy."""
PAST_THEM = "no_grpc_proxy"
"""The variable that names whom it calls itself: ends of host names, with commas."""


def past_proxies(environ: Mapping[str, str], cluster: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """What to set so that gRPC calls the `host:port` of this cluster itself; empty where there is no proxy."""
    if not any(environ.get(name) for name in PROXIES):
        return {}
    named = environ.get(PAST_THEM) or environ.get("no_proxy") or ""
    listed = [one for one in (text.strip() for text in named.split(",")) if one]
    hosts = (host_of(address) for addresses in cluster.values() for address in addresses)
    return {PAST_THEM: ",".join([*listed, *sorted({_end(host) for host in hosts} - {*listed})])}


def _end(host: str) -> str:
    """What the tasks' names have in common: all that follows their first label."""
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(host)
        return host
    _, dot, end = host.partition(".")
    return f"{dot}{end}" if end else host
