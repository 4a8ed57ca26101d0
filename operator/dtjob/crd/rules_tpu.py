"""Rules about strategy TPU: slices of one host, and what GKE needs to know of them."""

from __future__ import annotations

from dtjob.api.spec.strategy import LOCAL_TPU, TPU_RESOURCE
from dtjob.crd.rule import Reason, Rule, Value

SINGLE_HOST_TOPOLOGIES = ("1x1", "2x2", "2x4", "1x1x1", "1x2x1", "2x2x1")
"""GKE's TPU slices that one node holds, whichever kind of TPU it is (GKE, "Plan TPUs")."""

_TPU = "spec.strategyOptions.tpu"


def _asks_for_chips(spec: Value) -> bool:
    """Whether the chief asks for google.com/tpu by hand."""
    resources = (spec["replicaSpecs"].get("chief") or {}).get("resources") or {}
    return any(TPU_RESOURCE in (resources.get(kind) or {}) for kind in ("limits", "requests"))


def _topology(spec: Value) -> Value:
    return ((spec.get("strategyOptions") or {}).get("tpu") or {}).get("topology")


_CHIPS = " || ".join(
    f"(has(self.replicaSpecs.chief.resources.{kind}) && '{TPU_RESOURCE}' in self.replicaSpecs.chief.resources.{kind})"
    for kind in ("limits", "requests")
)
TPU_RULES = (
    Rule(
        _TPU,
        f"!has(self.topology) || self.topology in [{', '.join(map(repr, SINGLE_HOST_TOPOLOGIES))}]",
        lambda tpu: tpu.get("topology") is None or tpu["topology"] in SINGLE_HOST_TOPOLOGIES,
        f"dtjob trains only on slices of one host: use one of {', '.join(SINGLE_HOST_TOPOLOGIES)}",
        "topology",
    ),
    Rule(
        _TPU,
        "has(self.topology) == has(self.accelerator)",
        lambda tpu: (tpu.get("topology") is None) == (tpu.get("accelerator") is None),
        "GKE selects nodes by accelerator and topology: set both, or neither",
        "accelerator",
    ),
    Rule(
        _TPU,
        f"!has(self.topology) || self.address == '{LOCAL_TPU}'",
        lambda tpu: tpu.get("topology") is None or tpu.get("address", LOCAL_TPU) == LOCAL_TPU,
        "accelerator and topology are for the TPU of the pod's own node: remove them, or remove address",
        "address",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        "!has(self.strategyOptions) || !has(self.strategyOptions.tpu) || !has(self.strategyOptions.tpu.topology) || "
        f"!has(self.replicaSpecs.chief) || !has(self.replicaSpecs.chief.resources) || !({_CHIPS})",
        lambda spec: _topology(spec) is None or not _asks_for_chips(spec),
        f"strategyOptions.tpu.topology sets the number of chips: remove {TPU_RESOURCE} here",
        "replicaSpecs.chief.resources",
        Reason.FORBIDDEN,
    ),
)
