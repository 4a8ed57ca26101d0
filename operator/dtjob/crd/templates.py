"""The training container of a role's pod template, in Python and in CEL."""

from __future__ import annotations

from typing import Any

from dtjob.api.pod_template import TRAINING_CONTAINER


def training(replica: Any) -> list[Any]:
    """The template's training container, as a list of none or one; `replica` is a block of replicaSpecs."""
    spec = (replica.get("template") or {}).get("spec") or {}
    return [container for container in spec.get("containers") or [] if container["name"] == TRAINING_CONTAINER]


def training_cel(replica: str, condition: str) -> str:
    """CEL: the template of this replica has a training container for which `condition` (of `c`) holds."""
    spec = f"{replica}.template.spec"
    return (
        f"has({replica}.template) && has({spec}) && has({spec}.containers) && "
        f"{spec}.containers.exists(c, c.name == '{TRAINING_CONTAINER}' && {condition})"
    )
