# SPDX-License-Identifier: Apache-2.0
"""What must hold of gangs, whoever binds them: bare nodes with room for a pod each, a real scheduler, and jobs."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.support.chart import wait_until
from tests.cluster.support.jobs import job, wait_phase
from tests.cluster.support.kubelet import Kubelet
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, ApiError, Object

PAGE = Path(__file__).resolve().parents[3] / "docs" / "jobs" / "gangs.md"
RECORDED = Path(__file__).resolve().parents[2] / "recorded"
"""Definitions of others' kinds, as they were in the release that a file's name says."""
VOLCANO = RECORDED / "volcano-v1.15.0-podgroups.yaml"
COSCHEDULING = RECORDED / "scheduler-plugins-v0.34.7-podgroups.yaml"
APIS = {
    "Kubernetes": "scheduling.k8s.io/v1beta1",
    "Volcano": "scheduling.volcano.sh/v1beta1",
    "Coscheduling": "scheduling.x-k8s.io/v1alpha1",
}
"""Where the providers' PodGroups are."""
MEMBERS: dict[str, Callable[..., bool]] = {
    "Kubernetes": lambda pod, job="digits": pod["spec"].get("schedulingGroup") == {"podGroupName": job},
    "Volcano": lambda pod, job="digits": (
        pod["metadata"].get("annotations", {}).get("scheduling.k8s.io/group-name") == job
        and pod["spec"]["schedulerName"] == "volcano"
    ),
    "Coscheduling": lambda pod, job="digits": (
        pod["metadata"]["labels"].get("scheduling.x-k8s.io/pod-group") == job
        and pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    ),
}
"""How a pod of each provider is told to be a member of a job's gang."""
OF_TEST = "dtjob.test/namespace"
"""Label of nodes that are one test's."""
FOUR = ("chief-0", "worker-0", "worker-1", "worker-2")


def serve(cluster: ControlPlane, definition: str) -> str:
    """Have the API server serve what this definition (YAML) defines; gives its name."""
    cluster.kubectl("create", "--filename=-", stdin=definition)
    name: str = yaml.safe_load(definition)["metadata"]["name"]
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{name}", "--timeout=120s")
    plural, group = name.split(".", 1)
    version = yaml.safe_load(definition)["spec"]["versions"][0]["name"]
    wait_until(
        lambda: cluster.kubectl("get", "--raw", f"/apis/{group}/{version}/{plural}", check=False).returncode == 0,
        f"{name} is served",
    )
    return name


class Nodes:
    """Nodes of one test, on each of which there is room for one pod. There is no kubelet on them."""

    def __init__(self, api: Api, namespace: str) -> None:
        self._api, self._namespace, self._names = api, namespace, list[str]()

    def add(self, count: int = 1, **labels: str) -> None:
        """So many more, with these labels."""
        for _ in range(count):
            name = f"{self._namespace}-{len(self._names)}"
            metadata = {"name": name, "labels": {OF_TEST: self._namespace, "kubernetes.io/hostname": name, **labels}}
            self._api.create("nodes", None, {"apiVersion": "v1", "kind": "Node", "metadata": metadata})
            room = {"cpu": "1500m", "memory": "8Gi", "pods": "10", "ephemeral-storage": "8Gi"}
            ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
            status = {"allocatable": room, "capacity": room, "conditions": [ready]}
            self._api.patch("nodes", None, name, {"status": status}, "status")
            # Each new node has the taint not-ready, which no controller takes away here.
            self._api.patch("nodes", None, name, {"spec": {"taints": None}})
            self._names.append(name)

    def remove(self) -> None:
        for name in self._names:
            self._api.delete("nodes", None, name)


@contextmanager
def nodes_of(api: Api, namespace: str) -> Iterator[Nodes]:
    """The test's nodes, which go with it."""
    nodes = Nodes(api, namespace)
    try:
        yield nodes
    finally:
        nodes.remove()


def gang_job(namespace: str, provider: str, name: str = "digits", workers: int = 3, **more: Any) -> Object:
    """A chief and workers (and one ps more under ParameterServer) in a gang, of which each takes a node of the test's.
    `more`: other fields of the spec, and `evaluator`, which takes no room; `gang`: more of that."""
    selector = {"nodeSelector": {OF_TEST: namespace}}
    asks = {"resources": {"requests": {"cpu": "1"}}, "template": {"spec": selector}}
    replicas: Object = {"chief": asks, "worker": {"replicas": workers, **asks}}
    if more.get("strategy") == "ParameterServer":
        replicas["ps"] = asks
    if more.pop("evaluator", False):
        replicas["evaluator"] = {"template": {"spec": selector}}
    gang = {"provider": provider, **more.pop("gang", {})}
    scheduling = {"gang": gang, **more.pop("scheduling", {})} if provider else {}
    backoff = {"failurePolicy": {"backoff": {"initialSeconds": 0}}}
    return job(name, replicaSpecs=replicas, scheduling=scheduling, **backoff, **more)


def page_manifest(provider: str) -> Object:
    """The manifest of docs/jobs/gangs.md for this provider. Raises StopIteration where it has none."""
    blocks = re.findall(r"```yaml\n(.*?)```", PAGE.read_text(), re.S)
    manifests = (block for block in map(yaml.safe_load, blocks) if block.get("kind") == "DistributedTrainingJob")
    found: Object = next(one for one in manifests if one["spec"]["scheduling"]["gang"]["provider"] == provider)
    return found


def on_nodes_of(manifest: Object, namespace: str) -> Object:
    """The job, on the test's nodes, without a claim, and without a pause before a task is tried again."""
    manifest["spec"]["checkpoint"]["storage"]["volume"] = {"emptyDir": {}}
    for replica in manifest["spec"]["replicaSpecs"].values():
        replica["template"] = {"spec": {"nodeSelector": {OF_TEST: namespace}}}
    manifest["spec"]["failurePolicy"] = {"backoff": {"initialSeconds": 0}}
    return manifest


def group_of(api: Api, namespace: str, provider: str, name: str = "digits") -> Object | None:
    """The job's PodGroup, None where there is none or it is going."""
    try:
        found = api.call("GET", f"apis/{APIS[provider]}/namespaces/{namespace}/podgroups/{name}")
    except ApiError as error:
        if error.status != 404:
            raise
        return None
    return None if "deletionTimestamp" in found["metadata"] else found


def bound(pods: dict[str, Object], job: str = "digits") -> set[str]:
    """The pods of a job that have a node, by their names without the job's."""
    return {name.removeprefix(f"{job}-") for name, pod in pods.items() if _is_of(pod, job) and _node(pod)}


def looked_for(pods: dict[str, Object], job: str, count: int) -> bool:
    """Whether the scheduler has found no node for so many pods of the job, and bound none."""
    conditions = [pod["status"].get("conditions") or [] for pod in pods.values() if _is_of(pod, job) and not _node(pod)]
    said = [one for some in conditions for one in some if one["type"] == "PodScheduled" and one["status"] == "False"]
    return len(said) >= count and not bound(pods, job)


def _is_of(pod: Object, job: str) -> bool:
    return bool(pod["metadata"]["labels"]["training.dtjob.dev/job-name"] == job)


def _node(pod: Object) -> str | None:
    node: str | None = pod["spec"].get("nodeName")
    return node


def four_wait_for_room_for_four(api: Api, namespace: str, kubelet: Kubelet, provider: str) -> None:
    """None is bound where there is room for three, all four are where there is room for four; the evaluator comes to
    the chief then; and a pod that replaces another is bound beside the three that run."""
    with nodes_of(api, namespace) as nodes:
        nodes.add(3)
        api.create("dtjobs", namespace, on_nodes_of(page_manifest(provider), namespace))
        pods = api.wait("pods", namespace, lambda pods: len(pods) == 4 and looked_for(pods, "digits", 4))
        assert bound(pods) == set()
        group = group_of(api, namespace, provider)
        assert group is not None
        nodes.add(1)
        pods = api.wait("pods", namespace, lambda pods: bound(pods) == {f"{one}-0" for one in (*FOUR, "evaluator-0")})
        assert len({_node(pods[f"digits-{one}-0"]) for one in FOUR}) == 4
        assert _node(pods["digits-evaluator-0-0"]) == _node(pods["digits-chief-0-0"])
        for name in pods:
            kubelet.run(name)
        wait_phase(api, namespace, "Running")

        kubelet.exit("digits-worker-1-0", 1)
        pods = api.wait("pods", namespace, lambda pods: "worker-1-1" in bound(pods))
        for one in ("chief-0", "worker-0", "worker-2"):
            assert pods[f"digits-{one}-0"]["status"]["phase"] == "Running"
        kubelet.run("digits-worker-1-1")
        wait_phase(api, namespace, "Running")

        api.patch("dtjobs", namespace, "digits", {"spec": {"suspend": True}})
        wait_phase(api, namespace, "Suspended")
        api.wait("pods", namespace, lambda pods: not pods)
        wait_until_gone(api, namespace, provider)


def two_jobs_never_hold_half_each(api: Api, namespace: str, kubelet: Kubelet, provider: str) -> None:
    """Of two jobs of three pods on four nodes one has all of its pods and the other none, and then the other has."""
    jobs = ("first", "second")
    with nodes_of(api, namespace) as nodes:
        nodes.add(4)
        for name in jobs:
            api.create("dtjobs", namespace, gang_job(namespace, provider, name, workers=2))

        def one_of_two(pods: dict[str, Object]) -> bool:
            counts = [len(bound(pods, name)) for name in jobs]
            return sorted(counts) == [0, 3] and looked_for(pods, jobs[counts.index(0)], 3)

        pods = api.wait("pods", namespace, one_of_two)
        winner, loser = sorted(jobs, key=lambda name: -len(bound(pods, name)))
        for name in (name for name in pods if name.startswith(winner)):
            kubelet.run(name)
        wait_phase(api, namespace, "Running", winner)
        kubelet.succeed(f"{winner}-chief-0-0")
        wait_phase(api, namespace, "Succeeded", winner)
        wait_until_gone(api, namespace, provider, winner)
        for name in (name for name in pods if name.startswith(winner) and "chief" not in name):
            kubelet.succeed(name)
        api.wait("pods", namespace, lambda pods: len(bound(pods, loser)) == 3, timeout=120)


def wait_until_gone(api: Api, namespace: str, provider: str, name: str = "digits", timeout: float = 60) -> None:
    """Wait until the job's PodGroup is gone, or going."""
    wait_until(lambda: group_of(api, namespace, provider, name) is None, f"the PodGroup of {name} is gone", timeout)
