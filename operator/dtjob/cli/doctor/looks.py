# SPDX-License-Identifier: Apache-2.0
"""What `dtjob doctor` looks at, one function for each thing."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from dtjob.api.names import API_VERSION, GROUP, KIND, PLURAL
from dtjob.cli.doctor.finding import Finding, good, not_seen, note, problem
from dtjob.client.cluster import Cluster
from dtjob.client.errors import Forbidden, NotFound, Refused, Unavailable

Object = dict[str, Any]
CHART = "install the operator with helm"
_CRD = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{PLURAL}.{GROUP}"
OPERATORS = ("/apis/apps/v1/deployments", {"labelSelector": "app.kubernetes.io/name=dtjob"})
"""Where the Deployments of operators are, and which ones they are."""
_GPU = "nvidia.com/gpu"
_NEEDED = (
    ("create", GROUP, PLURAL, "to submit jobs"),
    ("create", "", "configmaps", "to send scripts"),
    ("get", "", "pods/log", "to read logs"),
    ("create", "", "pods/exec", "to fetch files"),
    ("create", "", "pods/portforward", "to show TensorBoard"),
)


def look_at_all(cluster: Cluster, now: datetime | None = None) -> Iterator[Finding]:
    """Every finding, in the order in which to read them. Raises ClientError where no API server answers."""
    version = cluster.connection.call("GET", "/version").get("gitVersion", "of an unknown version")
    yield good("cluster", f"{cluster.connection.access.server} is Kubernetes {version}")
    deployments: list[Object] = []
    looks: tuple[tuple[str, Callable[[], Iterator[Finding]]], ...] = (
        ("definition", lambda: _definition(cluster)),
        ("rights", lambda: _rights(cluster)),
        ("operator", lambda: _operator(cluster, now or datetime.now(UTC), deployments)),
        ("nodes", lambda: _nodes(cluster, deployments)),
        ("storage", lambda: _storage(cluster)),
        ("queues and gangs", lambda: _providers(cluster)),
    )
    for what, look in looks:
        try:
            yield from look()
        except Forbidden:
            yield not_seen(what, "you may not look at it; an administrator of the cluster may")
        except (Refused, Unavailable) as error:
            yield not_seen(what, str(error))


def _definition(cluster: Cluster) -> Iterator[Finding]:
    try:
        cluster.connection.call("GET", f"/apis/{API_VERSION}")
    except NotFound:
        yield problem("definition", f"the cluster does not serve {KIND}s", "Apply crds/, or " + CHART)
        return
    stored = cluster.connection.call("GET", _CRD)
    from dtjob.crd.definition import crd  # it takes a third of a second, and there are findings before it

    ours = crd()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    theirs = stored["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    missing = sorted(set(ours) - set(theirs))
    if missing or ours != theirs:
        fields = f", which lacks {', '.join(missing)}" if missing else ""
        yield note("definition", f"is of another version of dtjob{fields}", "Apply crds/ of the operator's version")
    else:
        yield good("definition", f"{API_VERSION}, of this version of dtjob")


def _rights(cluster: Cluster) -> Iterator[Finding]:
    denied = [
        f"{verb} {resource} ({why})"
        for verb, group, resource, why in _NEEDED
        if not _may(cluster, verb, group, resource)
    ]
    if denied:
        advice = "Ask for the role edit of the namespace, which has them if the chart has rbac.userRoles"
        yield problem("rights", f"in {cluster.namespace} you may not {', '.join(denied)}", advice)
    else:
        yield good("rights", f"in {cluster.namespace} you may do what dtjob needs")


def _may(cluster: Cluster, verb: str, group: str, resource: str) -> bool:
    name, _, part = resource.partition("/")
    attributes = {"namespace": cluster.namespace, "verb": verb, "group": group, "resource": name, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    return bool(cluster.connection.call("POST", path, review).get("status", {}).get("allowed"))


def _operator(cluster: Cluster, now: datetime, found: list[Object]) -> Iterator[Finding]:
    found += cluster.connection.call("GET", OPERATORS[0], query=OPERATORS[1])["items"]
    if not found:
        yield problem("operator", "no Deployment with the label app.kubernetes.io/name=dtjob", CHART.capitalize())
        return
    for one in found:
        namespace, name = one["metadata"]["namespace"], one["metadata"]["name"]
        ready, wanted = one.get("status", {}).get("readyReplicas", 0), one["spec"].get("replicas", 1)
        if ready < 1:
            advice = f"Look at kubectl -n {namespace} describe deployment {name}"
            yield problem("operator", f"{namespace}/{name} has {ready} of {wanted} pods ready", advice)
            continue
        yield good("operator", f"{namespace}/{name} has {ready} of {wanted} pods ready")
        yield from _leader(cluster, one, now)


def _leader(cluster: Cluster, deployment: Object, now: datetime) -> Iterator[Finding]:
    arguments = arguments_of(deployment)
    if "--leader-election" not in arguments:
        return
    namespace = deployment["metadata"]["namespace"]
    name = _value(arguments, "--lease-name") or "dtjob"
    lease = cluster.connection.call("GET", f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")["spec"]
    age = (now - datetime.fromisoformat(lease["renewTime"])).total_seconds() if lease.get("renewTime") else None
    if age is None or age > lease.get("leaseDurationSeconds", 15):
        advice = (
            f"Look at the logs of the operator: kubectl -n {namespace} logs deployment/{deployment['metadata']['name']}"
        )
        yield problem("leader", f"nobody holds the Lease {namespace}/{name}", advice)
    else:
        yield good("leader", f"{lease.get('holderIdentity')} holds the Lease {namespace}/{name}")


def _nodes(cluster: Cluster, deployments: list[Object]) -> Iterator[Finding]:
    nodes = cluster.connection.call("GET", "/api/v1/nodes")["items"]
    ready = [node for node in nodes if _is_ready(node)]
    if not ready:
        yield problem("nodes", f"none of {len(nodes)} nodes is ready", "Look at kubectl get nodes")
        return
    gpus = sum(int(str(node["status"].get("allocatable", {}).get(_GPU, 0))) for node in ready)
    yield good("nodes", f"{len(ready)} of {len(nodes)} are ready, with {gpus} GPUs ({_GPU})")
    for image in filter(None, (_value(arguments_of(one), "--default-image") for one in deployments)):
        there = [node for node in ready if image in str(node["status"].get("images"))]
        if there:
            yield good("image", f"{image} is on {len(there)} of {len(ready)} nodes")
        else:
            yield note("image", f"{image} is on no node yet", "The first job pulls it")
    if deployments and not any(_value(arguments_of(one), "--default-image") for one in deployments):
        yield note("image", "the operator has no default image", "Write spec.image in each job, or give --image")


def _storage(cluster: Cluster) -> Iterator[Finding]:
    classes = cluster.connection.call("GET", "/apis/storage.k8s.io/v1/storageclasses")["items"]
    names = [one["metadata"]["name"] for one in classes]
    key = "storageclass.kubernetes.io/is-default-class"
    default = [one["metadata"]["name"] for one in classes if one["metadata"].get("annotations", {}).get(key) == "true"]
    if default:
        yield good("storage", f"StorageClass {default[0]} is the default")
    else:
        has = f"there are {', '.join(names)}" if names else "there is none"
        yield note("storage", f"no StorageClass is the default; {has}", "Name one in each claim, or use a bucket")


def _providers(cluster: Cluster) -> Iterator[Finding]:
    groups = {one["name"]: [version["version"] for version in one["versions"]] for one in _groups(cluster)}
    found = [name for group, name in _PROVIDERS.items() if group in groups]
    if any(version != "v1alpha1" for version in groups.get("scheduling.k8s.io", []) if version != "v1"):
        found.append("gangs of Kubernetes")
    if found:
        yield good("queues and gangs", ", ".join(found))
    else:
        yield note("queues and gangs", "neither Kueue nor a scheduler of gangs is there", "Jobs run without them")


_PROVIDERS = {
    "kueue.x-k8s.io": "Kueue",
    "scheduling.volcano.sh": "gangs of Volcano",
    "scheduling.x-k8s.io": "gangs of Coscheduling",
}


def _groups(cluster: Cluster) -> list[Object]:
    found: list[Object] = cluster.connection.call("GET", "/apis")["groups"]
    return found


def _is_ready(node: Object) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def arguments_of(deployment: Object) -> list[str]:
    """The words of its containers' commands."""
    containers = deployment["spec"]["template"]["spec"]["containers"]
    return [str(word) for one in containers for word in (*(one.get("command") or ()), *(one.get("args") or ()))]


def values_of(arguments: list[str], option: str) -> list[str]:
    """Each value of an option, written as one word or as two."""
    joined = [word.partition("=")[2] for word in arguments if word.startswith(f"{option}=")]
    return joined + [after for word, after in pairwise(arguments) if word == option]


def _value(arguments: list[str], option: str) -> str | None:
    return next(iter(values_of(arguments, option)), None)
