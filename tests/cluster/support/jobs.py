# SPDX-License-Identifier: Apache-2.0
"""Jobs for tests of the operator, and what they make."""

from collections.abc import Callable
from typing import Any

from tools.cluster.rest import Api, Object

GROUP = "training.dtjob.dev"


def job(name: str = "digits", strategy: str = "MultiWorkerMirrored", program: bool = True, **spec: Any) -> Object:
    """A job: chief and two workers (one ps more under ParameterServer; the chief alone under single-pod strategies)."""
    replicas: Object = {"chief": {}}
    if strategy in ("MultiWorkerMirrored", "ParameterServer"):
        replicas["worker"] = {"replicas": 2}
    if strategy == "ParameterServer":
        replicas["ps"] = {}
    base: Object = {"strategy": strategy, "image": "dtjob-trainer:dev", "replicaSpecs": replicas}
    if program:
        base["program"] = {"entrypoint": "examples/digits.py"}
        base["checkpoint"] = {"storage": {"volume": {"emptyDir": {}}}}
    manifest: Object = {"apiVersion": f"{GROUP}/v1beta1", "kind": "DistributedTrainingJob", "metadata": {"name": name}}
    return {**manifest, "spec": {**base, **spec}}


def phase_is(phase: str) -> Any:
    """A condition for `Api.wait_for` on a job."""
    return lambda found: found is not None and found.get("status", {}).get("phase") == phase


def wait_phase(api: Api, namespace: str, phase: str, name: str = "digits") -> Object:
    """Wait until the job is in this phase; returns it."""
    found = api.wait_for("dtjobs", namespace, name, phase_is(phase))
    assert found is not None
    return found


def wait_pods(api: Api, namespace: str, *names: str) -> dict[str, Object]:
    """Wait until exactly these pods exist that are not being deleted; returns them."""

    def holds(pods: dict[str, Object]) -> bool:
        return {name for name, pod in pods.items() if not pod["metadata"].get("deletionTimestamp")} == set(names)

    return api.wait("pods", namespace, holds)


def uids(pods: dict[str, Object]) -> dict[str, str]:
    """Name to uid."""
    return {name: pod["metadata"]["uid"] for name, pod in pods.items()}


def columns(kubectl: Callable[..., Any], *options: str) -> dict[str, str]:
    """The one line of `kubectl get dtjobs`, by column; `kubectl` runs in the job's namespace."""
    header, row = kubectl("get", "dtjobs", *options).stdout.splitlines()
    starts = [header.index(word) for word in header.split()]
    return {
        header[start:end].strip(): row[start:end].strip()
        for start, end in zip(starts, [*starts[1:], None], strict=True)
    }


def all_created(found: Object | None) -> bool:
    """Whether every task of the job has had its pod, as the operator has noted it."""
    return bool((found or {}).get("status", {}).get("internal", {}).get("allCreated"))
