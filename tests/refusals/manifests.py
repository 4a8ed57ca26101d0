# SPDX-License-Identifier: Apache-2.0
"""Short ways to write manifests and rows of the table."""

from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

Manifest = dict[str, Any]

SINGLE = ("Default", "OneDevice", "Mirrored", "CentralStorage", "TPU")
PS_ROLES: Manifest = {"chief": {}, "worker": {"replicas": 2}, "ps": {}}
CLAIM = {"persistentVolumeClaim": {"claimName": "digits"}}
SIZE = {"storage": "10Gi"}
CLAIM_TEMPLATE: Manifest = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": SIZE}}}
CHECKPOINT: Manifest = {"storage": {"volume": CLAIM}}


def job(strategy: str = "MultiWorkerMirrored", name: str = "digits", **spec: Any) -> Manifest:
    """A good job with these fields of the spec; a field that is `...` is left out."""
    roles: Manifest = {"MultiWorkerMirrored": {"chief": {}, "worker": {"replicas": 2}}, "ParameterServer": PS_ROLES}
    whole = {
        "strategy": strategy,
        "image": "dtjob-trainer:dev",
        "program": {"entrypoint": "digits.py"},
        "replicaSpecs": roles.get(strategy, {"chief": {}}),
        **spec,
    }
    return {
        "apiVersion": "training.dtjob.dev/v1beta1",
        "kind": "DistributedTrainingJob",
        "metadata": {"name": name},
        "spec": deepcopy({field: value for field, value in whole.items() if value is not ...}),
    }


def pod(**spec: Any) -> Manifest:
    """Replicas whose worker has this pod spec."""
    return {"chief": {}, "worker": {"template": {"spec": spec}}}


def training(**container: Any) -> Manifest:
    """Replicas whose worker has these fields in the template's training container."""
    return pod(containers=[{"name": "tensorflow", **container}])


def checkpoint(**fields: Any) -> Manifest:
    """A job with this checkpoint block."""
    return job(checkpoint={**CHECKPOINT, **fields})


def storage(**fields: Any) -> Manifest:
    """A job whose checkpoints have this storage."""
    return checkpoint(storage=fields)


def options(strategy: str, **fields: Any) -> Manifest:
    """A job of this strategy with these options."""
    return job(strategy, strategyOptions=fields)


def changed(manifest: Manifest, *path: Any, to: Any) -> Manifest:
    """The manifest with what stands at this path of it set to `to`; `...` removes it."""
    whole = deepcopy(manifest)
    block = whole
    for name in path[:-1]:
        block = block[name]
    if to is ...:
        del block[path[-1]]
    else:
        block[path[-1]] = to
    return whole


@dataclass(frozen=True)
class Bad:
    """A manifest that is refused: by the API server with all of `says`, by `problems` with all of `or_says` or `says`.

    `says` names the field and the advice; `or_says` is for what the API server's own schema checks say
    in another way.
    """

    name: str
    manifest: Manifest
    says: tuple[str, ...]
    or_says: tuple[str, ...] = ()
    warned: bool = False
    """Whether an API server takes it, and `dtjob validate` warns so: what it says is useless."""


def bad_in(block: str, name: str, manifest: Manifest, field: str, *says: str) -> Bad:
    """A row whose field the API server gives as `block`, because rules about the block are one entry."""
    return Bad(name, manifest, (block, *says), (f"{block}.{field}: ", *says))


def bad(name: str, manifest: Manifest, *says: str, or_says: tuple[str, ...] = ()) -> Bad:
    """One row."""
    return Bad(name, manifest, says, or_says)


def warned(row: Bad) -> Bad:
    """The row, of a manifest that is taken with a warning."""
    return replace(row, warned=True)
