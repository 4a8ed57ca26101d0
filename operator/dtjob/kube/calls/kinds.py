# SPDX-License-Identifier: Apache-2.0
"""The kinds of objects that are asked for: their API versions and paths, and the resource that a path is about."""

from dtjob.api import kinds
from dtjob.objects import gangs, kueue
from dtjob.objects.manifest import Manifest

KINDS = {
    **kinds.KINDS,
    kueue.KIND: (kueue.API_VERSION, kueue.PLURAL),
    "LocalQueue": (kueue.API_VERSION, "localqueues"),
    "ClusterQueue": (kueue.API_VERSION, "clusterqueues"),
    "ResourceFlavor": (kueue.API_VERSION, "resourceflavors"),
    "WorkloadPriorityClass": (kueue.API_VERSION, "workloadpriorityclasses"),
    **{kind: (version, gangs.PLURAL) for kind, version in gangs.VERSIONS.items()},
}
"""Kind to API version and plural."""


def path_of(kind: str, namespace: str | None, version: str | None = None) -> str:
    """The path of all objects of this kind, in one namespace or in all."""
    known, plural = KINDS[kind]
    return kinds.path(version or known, plural, namespace)


def typed(kind: str, manifest: Manifest, version: str | None = None) -> Manifest:
    """The object with its kind, which items of a list do not carry (or that of their metadata)."""
    return {**manifest, "apiVersion": version or KINDS[kind][0], "kind": kind}


def resource_of(path: str) -> str:
    """The resource in a path of the API, with its subresource: `pods`, `distributedtrainingjobs/status`;
    `<discovery>` where there is none."""
    _, root, *rest = path.partition("?")[0].split("/")
    rest = rest[2:] if root == "apis" else rest[1:]
    if not rest:  # what a version of an API serves
        return "<discovery>"
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    return "/".join((rest[0], *rest[2:3]))
