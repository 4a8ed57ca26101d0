"""Free TCP ports for tests."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from dtjob.local.addresses import candidate_ports, is_free


def _one_by_one() -> Iterator[int]:
    """All ports below the ephemeral range, round and round from a random one: what was just in use comes last."""
    ports = candidate_ports()
    start = random.randrange(len(ports))
    return itertools.cycle([*ports[start:], *ports[:start]])


_ports = _one_by_one()


def free_ports(count: int) -> list[int]:
    """`count` different ports that nobody listens on, and that no outgoing connection takes before a test does."""
    return list(itertools.islice((port for port in _ports if is_free(port)), count))
