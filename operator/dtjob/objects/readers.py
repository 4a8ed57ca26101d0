# SPDX-License-Identifier: Apache-2.0
"""Readers: who beyond a job's own pods may read its tasks' /status and /metrics, by its NetworkPolicy.

The chart checks the peers that an administrator names, and an API server what is in them. Here only other fields are
refused: a selector with a typing error would be stored without that, and match everything.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

OPERATOR_LABELS = {"app.kubernetes.io/name": "dtjob"}
"""On the operator's pods; the chart sets it last, so that no value of its takes it away."""
NAMESPACE_NAME = "kubernetes.io/metadata.name"
"""On every namespace, set by the API server: its name, which nobody else's namespace can have."""


@dataclass(frozen=True)
class Readers:
    """`operator_namespace` None: the operator runs outside the cluster, and no policy can name it. `scrapers` are peers
    of a NetworkPolicy, as under `from`; none: nobody scrapes."""

    operator_namespace: str | None = None
    scrapers: tuple[Mapping[str, Any], ...] = ()

    def peers(self) -> list[dict[str, Any]]:
        """All of them, as under `from` of a NetworkPolicy; empty if there are none."""
        peers = [dict(scraper) for scraper in self.scrapers]
        if self.operator_namespace is None:
            return peers
        # Both in one peer: such a pod in that namespace, and not such a pod anywhere.
        operator = {
            "namespaceSelector": {"matchLabels": {NAMESPACE_NAME: self.operator_namespace}},
            "podSelector": {"matchLabels": dict(OPERATOR_LABELS)},
        }
        return [operator, *peers]


NO_READERS = Readers()


_SELECTOR = ("matchLabels", "matchExpressions")
_FIELDS = {"ipBlock": ("cidr", "except"), "namespaceSelector": _SELECTOR, "podSelector": _SELECTOR}
_INSTEAD = 'write {"podSelector": {"matchLabels": {"app": "prometheus"}}}, say'


def parse_scrapers(text: str) -> tuple[Mapping[str, Any], ...]:
    """A JSON list of a NetworkPolicy's peers. Raises ValueError that says what is wrong, and what to write."""
    try:
        peers = json.loads(text)
    except (ValueError, RecursionError):
        peers = None
    if not isinstance(peers, list):
        raise ValueError(f"{text!r} is no JSON list")
    for peer in peers:
        if not isinstance(peer, dict) or not peer:
            raise ValueError(f"{json.dumps(peer)} is no peer of a NetworkPolicy; {_INSTEAD}")
        for name, block in peer.items():
            if name not in _FIELDS:
                raise ValueError(f"{name} is no field of a peer; those are {', '.join(_FIELDS)}: {_INSTEAD}")
            if not isinstance(block, dict):
                raise ValueError(f"{json.dumps(peer)}: each field of a peer is an object; {_INSTEAD}")
            if others := sorted(block.keys() - set(_FIELDS[name])):
                known = ", ".join(_FIELDS[name])
                raise ValueError(f"{others[0]} is no field of {name}; those are {known}: {_INSTEAD}")
    return tuple(peers)
