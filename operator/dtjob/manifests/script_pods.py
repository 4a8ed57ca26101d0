# SPDX-License-Identifier: Apache-2.0
"""What the pods of a script's job get: `--cpu`, `--memory`, `--gpus`, `--env`, `--env-from-secret`, `--mount`. Pure."""

from typing import Any

from dtjob.api.names import TRAINING_CONTAINER
from dtjob.api.quantity import is_quantity
from dtjob.bad_input import BadInput
from dtjob.manifests.script import Script
from dtjob.objects.pod.accelerators import GPU_RESOURCE

Fields = dict[str, Any]
_READ_ONLY = "ro"


def variables(script: Script) -> Fields:
    """The fields of `program` with the variables. Raises BadInput."""
    values: dict[str, str] = {}
    for given in script.env:
        name, equals, value = given.partition("=")
        if not name or not equals:
            raise BadInput(f"--env: {given!r} is not NAME=VALUE; --env-from-secret NAME takes the keys of a Secret")
        values[name] = value
    for secret in script.secrets:
        if secret.split() != [secret]:
            raise BadInput(f"--env-from-secret: {secret!r} is no name; write the name of a Secret")
    env = [{"name": name, "value": value} for name, value in values.items()]
    env_from = [{"secretRef": {"name": secret}} for secret in script.secrets]
    return {**({"env": env} if env else {}), **({"envFrom": env_from} if env_from else {})}


def of_role(script: Script, *, computes: bool) -> Fields:
    """The fields of one role. `computes`: its tasks use the GPUs. Raises BadInput.

    CPU and memory are limits. Kubernetes then reserves as much, so that the job starts under any quota.
    """
    limits: Fields = {}
    for option, resource, amount in (("--cpu", "cpu", script.cpu), ("--memory", "memory", script.memory)):
        if amount is not None:
            if not is_quantity(amount):
                raise BadInput(f"{option}: {amount!r} is no quantity; write for example 4, 500m or 16Gi")
            limits[resource] = amount
    if script.gpus and computes:
        limits[GPU_RESOURCE] = script.gpus
    return {**({"resources": {"limits": limits}} if limits else {}), **_mounts(script)}


def _mounts(script: Script) -> Fields:
    """The template with the claims, each claim as one volume."""
    names: dict[str, str] = {}
    mounts: list[Fields] = []
    for given in script.mounts:
        claim, _, rest = given.partition(":")
        path, _, mode = rest.partition(":")
        if claim.split() != [claim] or not path.startswith("/") or mode not in ("", _READ_ONLY):
            raise BadInput(f"--mount: {given!r} is not CLAIM:/PATH or CLAIM:/PATH:{_READ_ONLY}")
        name = names.setdefault(claim, f"mount-{len(names) + 1}")
        mounts.append({"name": name, "mountPath": path, **({"readOnly": True} if mode else {})})
    if not mounts:
        return {}
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claim}} for claim, name in names.items()]
    container = {"name": TRAINING_CONTAINER, "volumeMounts": mounts}
    return {"template": {"spec": {"containers": [container], "volumes": volumes}}}
