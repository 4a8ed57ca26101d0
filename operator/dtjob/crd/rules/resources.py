# SPDX-License-Identifier: Apache-2.0
"""Rules about requests and limits, and about the slices of strategy TPU."""

from dtjob.api.spec.strategy import LOCAL_TPU, TPU_RESOURCE
from dtjob.crd.rule import Reason, Rule

_AT = "spec.replicaSpecs.*.resources"
ABOVE_LIMIT = "a request is above the limit of the same resource: lower the request, or raise the limit"
NO_LIMIT = (
    "GPUs, other extended resources and huge pages need a limit, which a request must equal: set limits and remove "
    "their requests"
)


def _amount(of: str) -> str:
    return f"string(self.{of}[k])"


_EACH = "!has(self.requests) || self.requests.all(k, "
_ARE_QUANTITIES = f"isQuantity({_amount('requests')}) && isQuantity({_amount('limits')})"
_COMPARED = f"quantity({_amount('requests')}).compareTo(quantity({_amount('limits')}))"
_HAS_LIMIT = "has(self.limits) && k in self.limits"

RESOURCE_RULES = (
    Rule(
        _AT,
        f"{_EACH}!({_HAS_LIMIT} && {_ARE_QUANTITIES}) || {_COMPARED} <= 0)",
        ABOVE_LIMIT,
        "requests",
    ),
    Rule(
        _AT,
        f"{_EACH}!(k.contains('/') && !k.contains('kubernetes.io/') || k.startsWith('hugepages-')) || "
        f"{_HAS_LIMIT} && {_ARE_QUANTITIES} && {_COMPARED} == 0)",
        NO_LIMIT,
        "requests",
    ),
)


SINGLE_HOST_TOPOLOGIES = ("1x1", "2x2", "2x4", "1x1x1", "1x2x1", "2x2x1")
"""GKE's TPU slices that one node holds, whichever kind of TPU it is (GKE, "Plan TPUs")."""

_TPU = "spec.strategyOptions.tpu"


_CHIPS = " || ".join(
    f"(has(self.replicaSpecs.chief.resources.{kind}) && '{TPU_RESOURCE}' in self.replicaSpecs.chief.resources.{kind})"
    for kind in ("limits", "requests")
)
TPU_RULES = (
    Rule(
        _TPU,
        f"!has(self.topology) || self.topology in [{', '.join(map(repr, SINGLE_HOST_TOPOLOGIES))}]",
        f"dtjob trains only on slices of one host: use one of {', '.join(SINGLE_HOST_TOPOLOGIES)}",
        "topology",
    ),
    Rule(
        _TPU,
        "has(self.topology) == has(self.accelerator)",
        "GKE selects nodes by accelerator and topology: set both, or neither",
        "accelerator",
    ),
    Rule(
        _TPU,
        f"!has(self.topology) || self.address == '{LOCAL_TPU}'",
        "accelerator and topology are for the TPU of the pod's own node: remove them, or remove address",
        "address",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        "!has(self.strategyOptions) || !has(self.strategyOptions.tpu) || !has(self.strategyOptions.tpu.topology) || "
        f"!has(self.replicaSpecs.chief) || !has(self.replicaSpecs.chief.resources) || !({_CHIPS})",
        f"strategyOptions.tpu.topology sets the number of chips: remove {TPU_RESOURCE} here",
        "replicaSpecs.chief.resources",
        Reason.FORBIDDEN,
    ),
)
