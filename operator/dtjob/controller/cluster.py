# SPDX-License-Identifier: Apache-2.0
"""What the reconciler needs of a cluster: `kube/calls/client.py` has an API server, `local/cluster.py` processes."""

from typing import Any, Protocol

from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Event, PatchWorkload

JobKey = tuple[str, str]
"""Namespace and name of a job."""


class ClusterError(Exception):
    """A call failed in a way that may pass: try again later."""

    retry_after = 0.0
    """Seconds before which whoever answered does not want to be asked again; 0 if it said nothing of it."""
    names_missing = False
    """Whether it names an object that is missing and that a user has to create, as far as anybody knows."""


class AlreadyExists(ClusterError):
    """An object of this name exists. `existing` is that object as the cluster has it."""

    def __init__(self, existing: Manifest) -> None:
        super().__init__(f"{existing['kind']} {existing['metadata']['name']} exists already")
        self.existing = existing


class Refused(ClusterError):
    """The cluster will not take this object however often it is asked; the message says why (quota, a bad
    template)."""


class Stale(ClusterError):
    """What was to be written is not there any more as it was read: the cluster has a newer version, or
    none."""


class Gone(Stale):
    """The object was deleted. No object has its name."""


class Cluster(Protocol):
    """The few calls that dtjob makes. Objects are plain JSON, each with `kind`. All may raise ClusterError."""

    async def create(self, manifest: Manifest) -> Manifest:
        """Create the object and return it as stored. Raises AlreadyExists or Refused."""

    async def delete(self, kind: str, namespace: str, name: str, uid: str, version: str = "") -> Manifest | None:
        """Delete the object with this uid; gone already, or another uid, is success. Returns a pod as it is stored by
        then, None if nobody says. Raises Stale where a `version` is given and the object has another."""

    async def get(self, kind: str, namespace: str | None, name: str) -> Manifest | None:
        """The object of this name as the cluster has it now, None if there is none; without a namespace one of the
        cluster's own."""

    async def patch_workload(self, namespace: str, action: PatchWorkload) -> Manifest:
        """Change the Workload and return it as stored. Raises Stale where it has another version, or is gone, and
        Refused."""

    async def stop_serving(self, namespace: str, name: str, uid: str) -> Manifest | None:
        """Take from the pod with this uid the label that the job's Service selects, and return it as stored; gone
        already (None) is success."""

    async def repair(self, wanted: Manifest, uid: str) -> Manifest | None:
        """Put into the object with this uid what `wanted` says of it, leave the rest, and return it as stored; None
        where it is gone. Raises Stale where it changed meanwhile, and Refused."""

    async def write_status(self, job: Manifest, status: dict[str, Any]) -> Manifest:
        """Replace the job's status, against its resourceVersion, and return the stored job. Raises Gone, Stale or
        Refused."""

    async def warning_about(self, namespace: str, pod_uid: str) -> str:
        """The newest warning that events have about the pod with this uid, in one line; empty if there is none."""

    async def emit(self, job: Manifest, event: Event) -> None:
        """Record an event on the job. Best effort: never raises."""
