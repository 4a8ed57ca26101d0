# SPDX-License-Identifier: Apache-2.0
"""What would keep a job's pods from being created though the definition takes it, for want of room for such rules."""

from collections.abc import Iterator

from dtjob.api.spec.pod_template import CHECKPOINT_VOLUME, CLUSTER_VOLUME, SOURCE_VOLUME
from dtjob.api.spec.replica_specs import Role
from dtjob.crd.answers.field_errors import Problem, open_block_errors
from dtjob.crd.answers.schemas import schema_of
from dtjob.crd.rule import Value, values_at
from dtjob.crd.rules.resources import RESOURCE_RULES
from dtjob.crd.rules.storage import NO_VOLUME

_POD = "spec.replicaSpecs.*.template.spec"
_LISTS = ("containers", "initContainers")
KUBERNETES_PARTS = (
    (_POD, "PodSpec"),
    ("spec.program.env", "[EnvVar]"),
    ("spec.program.envFrom", "[EnvFromSource]"),
    ("spec.checkpoint.storage.volume", "Volume"),
    ("spec.program.source.volume", "Volume"),
    ("spec.checkpoint.storage.volumeClaimTemplate", "PersistentVolumeClaimTemplate"),
)
"""Kubernetes' own parts of the manifest."""


def types_in_pods(manifest: Value) -> Iterator[Problem]:
    """Fields that pods do not have, or have with another type."""
    for at, name in KUBERNETES_PARTS:
        for path, value in values_at(manifest, at):
            yield from open_block_errors(value, schema_of(name), path)


def rules_of_pods(manifest: Value) -> list[Problem]:
    """Rules that pods break, of a manifest in which nothing else is wrong."""
    return [*_of_resources(manifest), *_of_mounts(manifest)]


def _of_resources(manifest: Value) -> Iterator[Problem]:
    for containers in _LISTS:
        for path, resources in values_at(manifest, f"{_POD}.{containers}[].resources"):
            there = _without_nulls(resources)
            broken = (rule for rule in RESOURCE_RULES if not rule.holds(there))
            yield from (Problem(f"{path}.{rule.field}", rule.message) for rule in broken)


def _without_nulls(value: Value) -> Value:
    """Amounts, and mappings of them, that are null are as if left out."""
    if not isinstance(value, dict):
        return value
    return {name: _without_nulls(item) for name, item in value.items() if item is not None}


def _of_mounts(manifest: Value) -> Iterator[Problem]:
    """Mounts of dtjob's own volumes in pods that lack them."""
    for role, block in manifest["spec"]["replicaSpecs"].items():
        spec = ((block or {}).get("template") or {}).get("spec") or {}
        theirs = {volume["name"] for volume in spec.get("volumes") or []}
        absent = _absent(manifest["spec"], role) - theirs
        containers = [one for name in _LISTS for one in spec.get(name) or []]
        if any(mount["name"] in absent for one in containers for mount in one.get("volumeMounts") or []):
            yield Problem(f"spec.replicaSpecs.{role}.template.spec.volumes", NO_VOLUME)


def _absent(spec: Value, role: str) -> set[str]:
    """dtjob's volumes that some pods of this role lack."""
    if role == Role.DATA:
        return {CLUSTER_VOLUME, SOURCE_VOLUME, CHECKPOINT_VOLUME}
    absent = set() if spec.get("program") else {CLUSTER_VOLUME}
    absent |= set() if (spec.get("program") or {}).get("source") else {SOURCE_VOLUME}
    storage = (spec.get("checkpoint") or {}).get("storage") or {}
    everywhere = storage.get("mountOn") == "All" or role in (Role.CHIEF, Role.EVALUATOR)
    if not storage or storage.get("uri") or not everywhere:
        absent.add(CHECKPOINT_VOLUME)
    return absent
