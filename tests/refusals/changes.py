# SPDX-License-Identifier: Apache-2.0
"""Changes of an existing job."""

from typing import Any

from tests.refusals.good import EVERYTHING
from tests.refusals.manifests import Manifest, bad, changed

BEFORE = EVERYTHING
"""The job that the changes below change."""


def _changed(*path: str, to: Any) -> Manifest:
    """BEFORE with the field at this path of its spec set to `to`; `...` removes it."""
    return changed(BEFORE, "spec", *path, to=to)


_AGAIN = "delete the job and create it again"
CHANGES = [
    bad("change-strategy", _changed("strategy", to="Default"), "spec.strategy", _AGAIN),
    bad("change-image", _changed("image", to="other:2"), "spec.image", _AGAIN),
    bad("remove-image", _changed("image", to=...), "spec.image", _AGAIN),
    bad("change-success-policy", _changed("successPolicy", to="Chief"), "spec.successPolicy", _AGAIN),
    bad("change-program", _changed("program", "args", to=["--epochs=30"]), "spec.program", _AGAIN),
    bad("change-replicas", _changed("replicaSpecs", "worker", "replicas", to=4), "spec.replicaSpecs", _AGAIN),
    bad("remove-evaluator", _changed("replicaSpecs", "evaluator", to=...), "spec.replicaSpecs", _AGAIN),
    bad(
        "change-template",
        _changed("replicaSpecs", "worker", "template", "spec", "tolerations", to=[]),
        "spec.replicaSpecs",
        _AGAIN,
    ),
    bad("change-options", _changed("strategyOptions", "communication", to="Auto"), "spec.strategyOptions", _AGAIN),
    bad("remove-options", _changed("strategyOptions", to=...), "spec.strategyOptions", _AGAIN),
    bad("change-directory", _changed("checkpoint", "storage", "mountPath", to="/other"), "spec.checkpoint", _AGAIN),
    bad("remove-volume-mount", _changed("checkpoint", "storage", "mountOn", to="Chief"), "spec.checkpoint", _AGAIN),
    bad("change-priority", _changed("scheduling", "priorityClassName", to="low"), "spec.scheduling", _AGAIN),
    bad("change-port", _changed("network", "port", to=4000), "spec.network", _AGAIN),
    bad("change-manager", _changed("managedBy", to="kueue.x-k8s.io/multikueue"), "spec.managedBy", _AGAIN),
    bad("remove-manager", _changed("managedBy", to=...), "spec.managedBy", _AGAIN),
    bad(
        "change-resources",
        _changed("replicaSpecs", "chief", "resources", "limits", to={"memory": "8Gi"}),
        "spec.replicaSpecs",
        "while a job is suspended, its templates' scheduling, labels, annotations and resources can",
    ),
]

CHANGES_TAKEN = {
    "nothing": BEFORE,
    "more-restarts": _changed("failurePolicy", "maxRestartsWithoutProgress", to=30),
    "no-failure-policy": _changed("failurePolicy", to=...),
    "clean-no-pods": _changed("cleanPodPolicy", to="None"),
    "suspend": _changed("suspend", to=True),
    "suspend-left-out": _changed("suspend", to=...),
    "later-deadline": _changed("activeDeadlineSeconds", to=172800),
    "no-deadline": _changed("activeDeadlineSeconds", to=...),
    "no-time-to-live": _changed("ttlSecondsAfterFinished", to=...),
}
