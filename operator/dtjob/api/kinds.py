# SPDX-License-Identifier: Apache-2.0
"""The kinds of objects that dtjob asks an API server for, and their paths."""

from dtjob.api.names import API_VERSION, KIND, PLURAL

KINDS = {
    KIND: (API_VERSION, PLURAL),
    "Pod": ("v1", "pods"),
    "ConfigMap": ("v1", "configmaps"),
    "Event": ("v1", "events"),
    "Service": ("v1", "services"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "NetworkPolicy": ("networking.k8s.io/v1", "networkpolicies"),
    "Lease": ("coordination.k8s.io/v1", "leases"),
    "PriorityClass": ("scheduling.k8s.io/v1", "priorityclasses"),
}
"""Kind to API version and plural. Those of queues and gangs are in kube/calls/kinds.py."""


def path(version: str, plural: str, namespace: str | None) -> str:
    """The path of all objects of a kind, in one namespace or in all."""
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    return f"{root}/namespaces/{namespace}/{plural}" if namespace else f"{root}/{plural}"
