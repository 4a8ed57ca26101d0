"""The kinds of objects that are asked for: their API versions, and where the API server has them."""

from __future__ import annotations

from dtjob.api.job import API_VERSION, KIND, PLURAL
from dtjob.kube import lease, pod_groups, workload_calls
from dtjob.objects import gangs
from dtjob.objects.manifest import Manifest

KINDS = {
    "Pod": ("v1", "pods"),
    "Service": ("v1", "services"),
    "ConfigMap": ("v1", "configmaps"),
    "Event": ("v1", "events"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    lease.KIND: (lease.API_VERSION, "leases"),
    KIND: (API_VERSION, PLURAL),
    **workload_calls.KINDS,
    **{kind: (versions[0], pod_groups.PLURAL) for kind, versions in gangs.VERSIONS.items()},
}
"""Kind to API version and plural."""


def path_of(kind: str, namespace: str | None, version: str | None = None) -> str:
    """The path of all objects of this kind, in one namespace or in all."""
    known, plural = KINDS[kind]
    version = version or known
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"


def typed(kind: str, manifest: Manifest, version: str | None = None) -> Manifest:
    """The object with its kind, which items of a list do not carry (or that of their metadata)."""
    return {**manifest, "apiVersion": version or KINDS[kind][0], "kind": kind}
