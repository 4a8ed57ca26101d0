# SPDX-License-Identifier: Apache-2.0
"""The manifest's `elasticPolicy`: workers whose number may change while the job runs."""

from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block, Seconds
from dtjob.api.spec.replica_specs import MAX_REPLICAS


class ElasticPolicy(Block):
    """When and how far the number of workers may change. dtjob never writes replicaSpecs.worker.replicas itself."""

    min_replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """Fewest workers with which the job trains if nodes or quota lack room. If left out, it never trains with fewer
    than replicaSpecs.worker.replicas."""
    max_replicas: Annotated[int, Field(ge=1, le=MAX_REPLICAS)] | None = None
    """Most workers that replicaSpecs.worker.replicas may ask for. No limit if left out."""
    schedule_timeout_seconds: Seconds = 300
    """Seconds that training waits for workers that no node or quota has room for. Then it continues with those that
    fit, at least minReplicas. Defaults to 300."""
    grow_period_seconds: Seconds = 600
    """Seconds after which a job that trains with fewer workers looks for room again. A placeholder pod waits for the
    room of each missing worker. When some have room, training restarts with more workers. Defaults to 600."""
