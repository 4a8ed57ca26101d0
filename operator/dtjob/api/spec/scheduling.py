# SPDX-License-Identifier: Apache-2.0
"""The manifest's `scheduling`: how the pods are placed."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block, Seconds

NodeLabel = Annotated[str, Field(min_length=1, max_length=317)]
"""The key of a label of nodes: a prefix of at most 253 characters, a slash, and 63."""


class GangProvider(StrEnum):
    """Who holds a gang's pods back until there is room for all of them."""

    KUBERNETES = "Kubernetes"
    VOLCANO = "Volcano"
    COSCHEDULING = "Coscheduling"


class VolcanoGang(Block):
    """Options of provider Volcano."""

    queue: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """Volcano Queue whose share the gang uses. Volcano's queue default if left out."""


class CoschedulingGang(Block):
    """Options of provider Coscheduling."""

    schedule_timeout_seconds: Seconds | None = None
    """Seconds that pods with a node wait for the others, before all are tried again. The plugin's default if left
    out."""


class Gang(Block):
    """Binds the pods that train to nodes all at once or not at all. The evaluator is not part of the gang."""

    provider: GangProvider | None = None
    """Scheduler whose PodGroup is created: Kubernetes (kube-scheduler), Volcano, or Coscheduling (the scheduler
    plugin). The operator's default if left out."""
    volcano: VolcanoGang | None = None
    """Options of provider Volcano."""
    coscheduling: CoschedulingGang | None = None
    """Options of provider Coscheduling."""


class Topology(Block):
    """Places the pods that train on nodes near each other: set exactly one of required and preferred."""

    required: NodeLabel | None = None
    """Key of a node label. All pods go to nodes with one value of it, or wait. Example: topology.kubernetes.io/zone."""
    preferred: NodeLabel | None = None
    """Key of a node label. Pods go to nodes with one value of it if there is room, and elsewhere if not."""


class Scheduling(Block):
    """How the pods are placed."""

    priority_class_name: Annotated[str, Field(min_length=1, max_length=253)] | None = None
    """PriorityClass of the pods. The cluster's default if left out."""
    gang: Gang | None = None
    """Binds the pods that train all at once, so that two jobs never hold half of a cluster each. Each pod is bound by
    itself if left out."""
    topology: Topology | None = None
    """Places the pods that train near each other. They go to any node if left out."""
