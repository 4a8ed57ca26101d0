# SPDX-License-Identifier: Apache-2.0
"""What `dtjob convert` says of manifests that it cannot read: older TFJobs, other kinds, and templates."""

from collections.abc import Mapping
from typing import Any

_BY_HAND = " cannot be converted; the page 'From TrainJob, JobSet and Job' of the guides shows where each field goes"
_KINDS = {
    **dict.fromkeys(("JobSet", "TrainJob", "Job"), _BY_HAND),
    "RayJob": " cannot be converted; the page 'Comparison' of the guides says when a RayJob is the better one",
    "Template": " is filled in first: oc process -f FILE --local -o yaml | dtjob convert -",
}
_NOT_SERVED = "is a version that no operator serves any more"
_IN_SPEC = (
    f"{_NOT_SERVED}; write kubeflow.org/v1, and move cleanPodPolicy, ttlSecondsAfterFinished, activeDeadlineSeconds "
    "and backoffLimit from spec into spec.runPolicy"
)
_VERSIONS = {
    **{f"kubeflow.org/{version}": _IN_SPEC for version in ("v1beta2", "v1beta1", "v1alpha2")},
    "kubeflow.org/v1alpha1": f"{_NOT_SERVED}; write kubeflow.org/v1, and each entry of the list spec.replicaSpecs in "
    "the mapping spec.tfReplicaSpecs, by its tfReplicaType: MASTER as Chief, WORKER as Worker, PS as PS",
}


def of_version(version: object) -> str:
    """What to change in a TFJob of this apiVersion, empty for one that is unknown."""
    return _VERSIONS.get(version, "") if isinstance(version, str) else ""


def of_kind(manifest: Any) -> str:
    """What follows on the kind of a manifest that is no TFJob, empty if nothing helps."""
    return _KINDS.get(str(manifest.get("kind")), "") if isinstance(manifest, Mapping) else ""


def of_helm(text: str) -> str:
    """What to do about a template of helm, empty if the text is none."""
    return "; a template of helm is rendered first: helm template CHART > FILE" if "{{" in text else ""
