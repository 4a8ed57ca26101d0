# SPDX-License-Identifier: Apache-2.0
"""Readers: who beyond a job's own pods may read its tasks' /status and /metrics, by its NetworkPolicy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dtjob.objects.peers import check

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


def parse_scrapers(text: str) -> tuple[Mapping[str, Any], ...]:
    """A JSON list of a NetworkPolicy's peers. Raises ValueError that says what is wrong."""
    try:
        peers = json.loads(text)
    except (ValueError, RecursionError):
        peers = None
    if not isinstance(peers, list):
        raise ValueError(f"{text!r} is no JSON list")
    for peer in peers:
        check(peer)
    return tuple(peers)
