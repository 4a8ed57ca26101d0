"""The manifest's `scheduling`: how the pods are placed."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block
from dtjob.api.replicas import MAX_REPLICAS
from dtjob.api.run_policy import LONGEST_SECONDS

NodeLabel = Annotated[str, Field(min_length=1, max_length=317)]
"""The key of a label of nodes: a prefix of at most 253 characters, a slash, and 63."""


class GangProvider(StrEnum):
    """Who holds a gang's pods back until there is room for all of them."""

    KUBERNETES = "Kubernetes"
    VOLCANO = "Volcano"
    COSCHEDULING = "Coscheduling"


class Gang(Block):
    """The pods that train are bound to nodes all at once, or not at all. The evaluator is outside of it."""

    provider: GangProvider | None = None
    """Whose PodGroup is made: Kubernetes (kube-scheduler's own gangs), Volcano, or Coscheduling (the plugin of
    kubernetes-sigs/scheduler-plugins). Left out: the operator's default."""
    min_available: Annotated[int, Field(ge=1, le=3 * MAX_REPLICAS)] | None = None
    """How many pods there must be room for at once. Left out: all that train; of elastic workers, their least."""
    timeout_seconds: Annotated[int, Field(ge=1, le=LONGEST_SECONDS)] | None = None
    """Coscheduling: seconds that pods which have found a node wait for the others, before all are tried anew."""
    queue: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Volcano: the Queue whose share the gang takes. Left out: the one named default."""


class Topology(Block):
    """The pods that train go where nodes are near each other. One of required and preferred."""

    required: NodeLabel | None = None
    """A label of nodes, such as that of a rack or an NVLink domain: all pods go to nodes of one value, or wait."""
    preferred: NodeLabel | None = None
    """A label of nodes: pods go to nodes of one value where there is room for them, and else elsewhere."""


class Scheduling(Block):
    """How the pods are placed."""

    priority_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """PriorityClass of the pods."""
    gang: Gang | None = None
    """Binds the pods that train all at once, so that two jobs never hold half of a cluster each. Left out: each pod is
    bound by itself."""
    topology: Topology | None = None
    """Brings the pods that train near each other. Left out: they go anywhere."""
