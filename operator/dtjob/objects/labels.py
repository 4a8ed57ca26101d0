# SPDX-License-Identifier: Apache-2.0
"""The labels on everything that dtjob makes, and how to tell its own children by them."""

from collections.abc import Mapping
from typing import Any

from dtjob.api.names import GROUP, KIND, MANAGED_BY_LABEL
from dtjob.objects.manifest import Manifest

JOB_NAME = f"{GROUP}/job-name"
JOB_UID = f"{GROUP}/job-uid"
ROLE = f"{GROUP}/role"
INDEX = f"{GROUP}/index"
ATTEMPT = f"{GROUP}/attempt"
SERVING = f"{GROUP}/serving"
"""On the one pod of a task that its host name points to; the job's Service selects it."""
MANAGED_BY = MANAGED_BY_LABEL


def of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """The object's labels, empty if it has none."""
    return manifest["metadata"].get("labels") or {}


def controller_uid(manifest: Manifest) -> str | None:
    """The uid of the object that controls this one, None for an orphan."""
    return _controller(manifest).get("uid")


def controlling_job(manifest: Manifest) -> str | None:
    """The name of the job that controls this object, by its owner references; None if none does."""
    owner = _controller(manifest)
    is_job = owner.get("kind") == KIND and owner["apiVersion"].startswith(f"{GROUP}/")
    return owner["name"] if is_job else None


def _controller(manifest: Manifest) -> Mapping[str, Any]:
    owners = manifest["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), {})


def task_id(pod: Manifest) -> str:
    """The task that a pod of ours is an attempt at, such as `worker-1`; raises KeyError on a pod without our
    labels."""
    labels = of(pod)
    return f"{labels[ROLE]}-{labels[INDEX]}"
