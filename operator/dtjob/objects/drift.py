# SPDX-License-Identifier: Apache-2.0
"""Drift: where a job's Service or NetworkPolicy is no longer as dtjob says, and how it is put right.

Only what dtjob says is compared, in one normal form. An API server fills in defaults. Others (a service mesh, a backup)
add labels, annotations and fields of their own, which stay. The operator writes the live object with dtjob's fields in
it, against the version that was read. It does not use server-side apply, which leaves in place what an earlier release
said and this one does not. (Objects are created by POST, whose fields another entry owns.) If a Service's port was
given another number, it would stay beside ours under the same name, which is refused.
"""

import json
from collections.abc import Mapping
from typing import Any

from dtjob.objects import gangs, labels
from dtjob.objects.manifest import Manifest

SHARED_KINDS = ("Service", "ConfigMap", "NetworkPolicy", "PersistentVolumeClaim")
"""The kinds of which a job's tasks share one object each."""

SAID = "said"
"""Where an object in memory keeps the fields of its spec that are dtjob's, as text."""


def drifted(wanted: Manifest, there: Manifest) -> str:
    """The first field of `there`, an object or what is kept of it in memory, that is not as in `wanted`; empty if all
    are.

    A ConfigMap never drifts: it is immutable, named after its data's hash, and found by its name, not by its labels. A
    claim never drifts: users enlarge it, and an earlier job may have made it.
    """
    if wanted["kind"] in ("ConfigMap", "PersistentVolumeClaim"):
        return ""
    if gangs.is_pod_group(wanted["kind"]):
        return gangs.drifted(wanted, there)
    found = labels.of(there)
    for name, value in labels.of(wanted).items():
        if found.get(name) != value:
            return f"metadata.labels[{name}]"
    if _said(wanted) == _said(there):
        return ""
    ours, theirs = json.loads(_said(wanted)), json.loads(_said(there))
    return next(f"spec.{name}" for name in ours | theirs if ours.get(name) != theirs.get(name))


def repaired(wanted: Manifest, there: Manifest) -> Manifest:
    """The object that is there, as the API server has it, with all that dtjob says of it."""
    made = labelled(there, labels.of(wanted))
    if gangs.is_pod_group(wanted["kind"]):
        return gangs.repaired(wanted, made)
    if wanted["kind"] == "NetworkPolicy":  # all of it is ours: whatever is added to it opens the job, or closes it
        made["spec"] = wanted["spec"]
    if wanted["kind"] == "Service":
        made["spec"] = {**there["spec"], "type": "ClusterIP", **wanted["spec"]}
    return made


def labelled(manifest: Manifest, more: Mapping[str, str]) -> Manifest:
    """The object with these labels too."""
    return {**manifest, "metadata": {**manifest["metadata"], "labels": {**labels.of(manifest), **more}}}


def with_said(manifest: Manifest) -> Manifest:
    """The object with all of its spec that `drifted` compares, which is then the only part worth keeping in memory."""
    return {**manifest, SAID: _said(manifest)}


def _said(manifest: Manifest) -> str:
    """What the object says of what dtjob says, as text: so a job's three objects take 6.5 KB, else 11 (whole: 31)."""
    said: str | None = manifest.get(SAID)
    return json.dumps(_owned_spec(manifest), sort_keys=True, separators=(",", ":")) if said is None else said


def _owned_spec(manifest: Manifest) -> dict[str, Any]:
    """The fields of the spec that are dtjob's, in normal form; none of a ConfigMap."""
    spec: dict[str, Any] = manifest.get("spec") or {}
    if manifest["kind"] == "Service":
        return {
            "type": spec.get("type", "ClusterIP"),
            "clusterIP": spec.get("clusterIP", ""),
            "publishNotReadyAddresses": bool(spec.get("publishNotReadyAddresses")),
            "selector": spec.get("selector") or {},
            "ports": sorted(
                (_service_port(port) for port in spec.get("ports") or ()),
                key=lambda port: (port["port"], port["protocol"]),
            ),
        }
    if manifest["kind"] == "NetworkPolicy":
        pruned = _pruned(spec)
        for rule in (*pruned.get("ingress", ()), *pruned.get("egress", ())):
            for port in rule.get("ports", ()):
                port.setdefault("protocol", "TCP")
        return {**pruned, "policyTypes": sorted(pruned.get("policyTypes", ()))}
    return {}


def _service_port(port: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": port.get("name", ""),
        "port": port["port"],
        "protocol": port.get("protocol", "TCP"),
        "targetPort": port.get("targetPort", port["port"]),
    }


def _pruned(value: Any) -> Any:
    """A copy without what an API server does not store: empty lists, and a selector's empty matchLabels. An empty
    object stays, as an empty selector or rule takes in everything."""
    if isinstance(value, list):
        return [_pruned(one) for one in value]
    if not isinstance(value, dict):
        return value
    copies = {name: _pruned(one) for name, one in value.items()}
    return {name: one for name, one in copies.items() if one not in (None, []) and (name, one) != ("matchLabels", {})}
