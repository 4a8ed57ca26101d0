# SPDX-License-Identifier: Apache-2.0
"""Which APIs of PodGroups an API server serves, and what to do where it has none.

An API is asked for when it is first needed. What is served is remembered.
"""

import math
import time
from collections.abc import Awaitable, Callable
from typing import Any

from dtjob.api.spec.scheduling import GangProvider
from dtjob.controller.cluster import Refused
from dtjob.kube.api_error import ApiError, NotServed
from dtjob.objects import gangs
from dtjob.objects.manifest import Manifest

_OTHER = "or set spec.scheduling.gang.provider to what the cluster has (delete the job and apply it again)"

_ADVICE = {
    gangs.KINDS[GangProvider.KUBERNETES]: (
        "kube-apiserver needs --feature-gates=GenericWorkload=true with "
        "--runtime-config=scheduling.k8s.io/v1beta1=true (Kubernetes 1.37 or newer), and kube-scheduler the same "
        "feature gate"
    ),
    gangs.KINDS[GangProvider.VOLCANO]: "install Volcano, or its definitions",
    gangs.KINDS[GangProvider.COSCHEDULING]: "install scheduler-plugins, or its definition of PodGroups",
}

DROPPED = (
    "this API server has dropped spec.schedulingGroup from the pod, which would be bound without its gang: one of the "
    "cluster's kube-apiservers runs without the feature gate GenericWorkload; turn it on with "
    f"--feature-gates=GenericWorkload=true, {_OTHER}"
)

NOT_AGAIN_SECONDS = 10.0
"""How long it is believed that a kind is not served: a thousand jobs may ask."""

NO_SUCH_RESOURCE = "could not find the requested resource"
"""An API server's words where the kind is not there, and not only the namespace."""

Serves = Callable[[str, str], Awaitable[bool]]
"""Whether the API server has this version of an API, and objects of this plural in it; raises ClusterError."""


def not_served(kind: str) -> str:
    """What to do where an API server has no PodGroups of this kind."""
    group = kind.removeprefix(f"{gangs.POD_GROUP}.")
    return f"this cluster serves no PodGroups of {group}: {_ADVICE[kind]}, {_OTHER}"


class Served:
    """The kinds of PodGroup that this API server has."""

    def __init__(self, serves: Serves, clock: Callable[[], float] = time.monotonic) -> None:
        self._serves, self._clock = serves, clock
        self._known: set[str] = set()
        self._asked_in_vain: dict[str, float] = {}

    async def version(self, kind: str) -> str:
        """The API version. Raises NotServed, with advice, if there is none. Raises ClusterError if nobody answers."""
        version = gangs.VERSIONS[kind]
        if kind in self._known:
            return version
        if self._clock() >= self._asked_in_vain.get(kind, -math.inf) + NOT_AGAIN_SECONDS:
            if await self._serves(version, gangs.PLURAL):
                self._known.add(kind)
                return version
            self._asked_in_vain[kind] = self._clock()
        raise NotServed(not_served(kind))

    def forget(self, kind: str) -> None:
        """Look anew when it is next asked for: it may be served no longer."""
        self._known.discard(kind)

    def words(self, kind: str, error: ApiError) -> str:
        """What a refusal says to users; where a kind of PodGroup has gone meanwhile, what to do."""
        if gangs.is_pod_group(kind) and error.code == 404 and NO_SUCH_RESOURCE in str(error):
            self.forget(kind)
            return not_served(kind)
        if gangs.is_pod_group(kind) and error.code == 403 and "cannot" in str(error):
            return (
                f"{error}; give the operator that right ({gangs.PROVIDERS[kind].value} in the chart's gangs.providers)"
            )
        return str(error)


async def refuse_dropped(delete: Callable[..., Awaitable[Any]], wanted: Manifest, stored: Manifest) -> None:
    """Read a pod back that was just made: one that lost its gang is deleted before it is bound somewhere. Raises
    Refused then."""
    if wanted["kind"] == "Pod" and gangs.lost_group(wanted, stored):
        metadata = stored["metadata"]
        await delete("Pod", metadata["namespace"], metadata["name"], metadata["uid"])
        raise Refused(DROPPED)
