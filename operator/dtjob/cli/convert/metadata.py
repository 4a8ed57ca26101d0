"""The metadata of a TFJob: what its user wrote stays, what a server wrote goes."""

from __future__ import annotations

from dtjob.cli.convert.fields import Fields, mapping
from dtjob.cli.convert.findings import Findings

_KEPT = ("name", "generateName", "namespace", "labels", "annotations")
_OF_A_SERVER = (
    *("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields", "selfLink", "deletionTimestamp"),
    "deletionGracePeriodSeconds",
)
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def metadata_of(metadata: Fields, said: Findings) -> Fields:
    """The dtjob's metadata."""
    found = {name: metadata[name] for name in _KEPT if name in metadata}
    annotations = dict(mapping(found.get("annotations"), "metadata.annotations"))
    if annotations.pop(_LAST_APPLIED, None) is not None:
        said.note(f"metadata.annotations.{_LAST_APPLIED}", "kubectl writes it; it is left out")
        found["annotations"] = annotations
    for name in metadata:
        if name in _OF_A_SERVER:
            said.note(f"metadata.{name}", "the API server writes it; it is left out")
        elif name not in _KEPT:
            said.warn(f"metadata.{name}", "belongs to the TFJob's own object; it is left out")
    return {name: value for name, value in found.items() if value not in ({}, None)}
