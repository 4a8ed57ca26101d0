# SPDX-License-Identifier: Apache-2.0
"""What a cluster shows to its users: whether it can run jobs, which operator it has, and what that one fills in."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from dtjob.api.names import API_VERSION, GROUP, KIND, PLURAL
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Forbidden, NotFound, Refused, Unavailable

Object = dict[str, Any]
_CHART = "install the operator with helm"
_CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}"
_GPU = "nvidia.com/gpu"
_NEEDED = (
    ("create", GROUP, PLURAL, "to submit jobs"),
    ("create", "", "configmaps", "to send scripts"),
    ("get", "", "pods/log", "to read logs"),
    ("create", "", "pods/exec", "to fetch files"),
    ("create", "", "pods/portforward", "to show TensorBoard"),
)
_PROVIDERS = {
    "kueue.x-k8s.io": "Kueue",
    "scheduling.volcano.sh": "gangs of Volcano",
    "scheduling.x-k8s.io": "gangs of Coscheduling",
}


OK, NOTE, PROBLEM, NOT_SEEN = "ok", "note", "problem", "not seen"
"""How a thing is: of a note some jobs cannot run, or not as well; of a problem none can."""


class Finding(NamedTuple):
    """One thing that was looked at, and what to do about it."""

    what: str
    level: str
    said: str
    advice: str = ""

    def __str__(self) -> str:
        advice = f". {self.advice}" if self.advice else ""
        return f"{self.level:<9} {self.what}: {self.said}{advice}"


def look_at_all(cluster: Cluster, now: datetime | None = None) -> Iterator[Finding]:
    """Every finding, in the order in which to read them. Raises ClientError where no API server answers."""
    version = cluster.connection.call("GET", "/version").get("gitVersion", "of an unknown version")
    yield Finding("cluster", OK, f"{cluster.connection.access.server} is Kubernetes {version}")
    deployments: list[Object] = []
    looks = {
        "definition": _definition(cluster),
        "rights": _rights(cluster),
        "operator": _operator(cluster, now or datetime.now(UTC), deployments),
        "nodes": _nodes(cluster, deployments),
        "storage": _storage(cluster),
        "queues and gangs": _providers(cluster),
    }
    for what, look in looks.items():
        try:
            yield from look
        except Forbidden:
            yield Finding(what, NOT_SEEN, "you may not look at it; an administrator of the cluster may")
        except (Refused, Unavailable) as error:
            yield Finding(what, NOT_SEEN, str(error))


def _definition(cluster: Cluster) -> Iterator[Finding]:
    try:
        cluster.connection.call("GET", f"/apis/{API_VERSION}")
    except NotFound:
        yield Finding("definition", PROBLEM, f"the cluster does not serve {KIND}s", "Apply crds/, or " + _CHART)
        return
    stored = cluster.connection.call("GET", _CRD)
    from dtjob.crd.definition import crd  # it takes a third of a second, and there are findings before it

    ours, theirs = (
        one["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
        for one in (crd(), stored)
    )
    if ours == theirs:
        yield Finding("definition", OK, f"{API_VERSION}, of this version of dtjob")
        return
    lacks = f", which lacks {', '.join(missing)}" if (missing := sorted(ours.keys() - theirs.keys())) else ""
    advice = "Apply crds/ of the operator's version"
    yield Finding("definition", NOTE, f"is of another version of dtjob{lacks}", advice)


def _rights(cluster: Cluster) -> Iterator[Finding]:
    denied = ", ".join(
        f"{verb} {resource} ({why})"
        for verb, group, resource, why in _NEEDED
        if not _may(cluster, verb, group, resource)
    )
    if denied:
        advice = "Ask for the role edit of the namespace, which has them if the chart has rbac.userRoles"
        yield Finding("rights", PROBLEM, f"in {cluster.namespace} you may not {denied}", advice)
    else:
        yield Finding("rights", OK, f"in {cluster.namespace} you may do what dtjob needs")


def _may(cluster: Cluster, verb: str, group: str, resource: str) -> bool:
    name, _, part = resource.partition("/")
    attributes = {"namespace": cluster.namespace, "verb": verb, "group": group, "resource": name, "subresource": part}
    version, kind = "authorization.k8s.io/v1", "SelfSubjectAccessReview"
    review = {"apiVersion": version, "kind": kind, "spec": {"resourceAttributes": attributes}}
    answer = cluster.connection.call("POST", f"/apis/{version}/selfsubjectaccessreviews", review)
    return bool(answer.get("status", {}).get("allowed"))


def _operator(cluster: Cluster, now: datetime, found: list[Object]) -> Iterator[Finding]:
    found += operators(cluster)
    if not found:
        said = "no Deployment with the label app.kubernetes.io/name=dtjob"
        yield Finding("operator", PROBLEM, said, _CHART.capitalize())
    for one in found:
        namespace, name = one["metadata"]["namespace"], one["metadata"]["name"]
        ready = one.get("status", {}).get("readyReplicas", 0)
        said = f"{namespace}/{name} has {ready} of {one['spec'].get('replicas', 1)} pods ready"
        if ready:
            yield Finding("operator", OK, said)
            yield from _leader(cluster, one, now)
        else:
            advice = f"Look at kubectl -n {namespace} describe deployment {name}"
            yield Finding("operator", PROBLEM, said, advice)


def _leader(cluster: Cluster, deployment: Object, now: datetime) -> Iterator[Finding]:
    if "--leader-election" not in _arguments_of(deployment):
        return
    namespace = deployment["metadata"]["namespace"]
    (name,) = values_of(deployment, "--lease-name")[:1] or ["dtjob"]
    lease = cluster.connection.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")["spec"]
    renewed, seconds = lease.get("renewTime"), timedelta(seconds=lease.get("leaseDurationSeconds", 15))
    if renewed and now - datetime.fromisoformat(renewed) <= seconds:
        yield Finding("leader", OK, f"{lease.get('holderIdentity')} holds the Lease {namespace}/{name}")
    else:
        logs = f"kubectl -n {namespace} logs deployment/{deployment['metadata']['name']}"
        advice = f"Look at the logs of the operator: {logs}"
        yield Finding("leader", PROBLEM, f"nobody holds the Lease {namespace}/{name}", advice)


def _nodes(cluster: Cluster, deployments: list[Object]) -> Iterator[Finding]:
    nodes = cluster.connection.call("GET", "/api/v1/nodes")["items"]
    ready = [node for node in nodes if _is_ready(node)]
    if not ready:
        yield Finding("nodes", PROBLEM, f"none of {len(nodes)} nodes is ready", "Look at kubectl get nodes")
        return
    gpus = sum(int(str(node["status"].get("allocatable", {}).get(_GPU, 0))) for node in ready)
    yield Finding("nodes", OK, f"{len(ready)} of {len(nodes)} are ready, with {gpus} GPUs ({_GPU})")
    images = [image for one in deployments for image in values_of(one, "--default-image")[:1]]
    for image in images:
        if there := sum(image in str(node["status"].get("images")) for node in ready):
            yield Finding("image", OK, f"{image} is on {there} of {len(ready)} nodes")
        else:
            yield Finding("image", NOTE, f"{image} is on no node yet", "The first job pulls it")
    if deployments and not images:
        advice = "Write spec.image in each job, or give --image"
        yield Finding("image", NOTE, "the operator has no default image", advice)


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _storage(cluster: Cluster) -> Iterator[Finding]:
    key = "storageclass.kubernetes.io/is-default-class"
    classes = cluster.connection.call("GET", "/apis/storage.k8s.io/v1/storageclasses")["items"]
    by_name = {one["metadata"]["name"]: one["metadata"].get("annotations", {}).get(key) for one in classes}
    if default := next((name for name, is_default in by_name.items() if is_default == "true"), None):
        yield Finding("storage", OK, f"StorageClass {default} is the default")
    else:
        has = f"there are {', '.join(by_name)}" if by_name else "there is none"
        advice = "Name one in each claim, or use a bucket"
        yield Finding("storage", NOTE, f"no StorageClass is the default; {has}", advice)


def _providers(cluster: Cluster) -> Iterator[Finding]:
    served = cluster.connection.call("GET", "/apis")["groups"]
    groups = {one["name"]: {version["version"] for version in one["versions"]} for one in served}
    found = [name for group, name in _PROVIDERS.items() if group in groups]
    if groups.get("scheduling.k8s.io", set()) - {"v1", "v1alpha1"}:
        found.append("gangs of Kubernetes")
    if found:
        yield Finding("queues and gangs", OK, ", ".join(found))
    else:
        said = "neither Kueue nor a scheduler of gangs is there"
        yield Finding("queues and gangs", NOTE, said, "Jobs run without them")


def version_of_operator(cluster: Cluster) -> str:
    """A line with the version of each operator. Raises ClientError if the cluster does not answer."""
    try:
        found = operators(cluster)
    except Forbidden:
        return "operator: you may not look at it"
    key = "app.kubernetes.io/version"
    versions = sorted({str((one["metadata"].get("labels") or {}).get(key, "unknown")) for one in found})
    return f"operator {', '.join(versions)}" if versions else "operator: the cluster has none"


def operators(cluster: Cluster) -> list[Object]:
    """The Deployments of operators. Raises ClientError."""
    query = {"labelSelector": "app.kubernetes.io/name=dtjob"}
    found: list[Object] = cluster.connection.call("GET", "/apis/apps/v1/deployments", query=query)["items"]
    return found


def _arguments_of(deployment: Object) -> list[str]:
    """The words of its containers' commands."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return [str(word) for one in containers for word in (*(one.get("command") or ()), *(one.get("args") or ()))]


def values_of(deployment: Object, option: str) -> list[str]:
    """Each value of an option of its command, written as one word or as two."""
    arguments = _arguments_of(deployment)
    joined = [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]
    return joined + [after for word, after in pairwise(arguments) if word == option]
