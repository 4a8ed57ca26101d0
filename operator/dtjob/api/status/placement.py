# SPDX-License-Identifier: Apache-2.0
"""`status.queue` and `status.gang`: who admits the job's pods, and who binds them together."""

import json
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from dtjob.api.status.block import Int32, Name, StatusBlock

LARGEST_POD_SETS = 64 * 1024
"""Characters of JSON of what an admission adds to the pods of all roles."""


def _not_too_large(pod_sets: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    if len(json.dumps(pod_sets)) > LARGEST_POD_SETS:
        raise ValueError(f"the pod sets must have {LARGEST_POD_SETS} characters at most")
    return pod_sets


class QueueEntry(StatusBlock):
    """The job's place in a queue of Kueue. The field is absent if the job is in no queue."""

    name: Name = ""
    """The name of the LocalQueue."""
    workload: Name = ""
    """The name of the job's Workload. The field is absent before there is one."""
    uid: Name = ""
    """The uid of the Workload that admits the job. The field is absent while the job waits."""
    cluster_queue: Name = ""
    """The name of the ClusterQueue whose quota the job uses. The field is absent while the job waits."""
    pod_sets: Annotated[dict[str, dict[str, Any]], Field(max_length=8), AfterValidator(_not_too_large)] = {}
    """What the admission adds to the pods of each role, such as nodeSelector and tolerations."""

    @property
    def runs(self) -> bool:
        """Whether the job was admitted, and was not told to stop since."""
        return bool(self.uid)

    def admitted(self, uid: str, cluster_queue: str, pod_sets: dict[str, dict[str, Any]]) -> "QueueEntry":
        """The entry of a job that was admitted with this Workload."""
        return self.but(uid=uid, cluster_queue=cluster_queue, pod_sets=pod_sets)

    def waiting(self) -> "QueueEntry":
        """The entry of a job that waits, again or for the first time."""
        return self.but(uid="", cluster_queue="", pod_sets={})


class Gang(StatusBlock):
    """The gang that the job started with. The field is absent if spec.scheduling.gang is not set."""

    provider: Name
    """The API of the PodGroup that binds the pods together: Kubernetes, Volcano or Coscheduling."""
    min_available: Int32
    """The number of pods that are bound together."""
