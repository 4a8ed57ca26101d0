"""Rules about requests and limits: what the API server refuses in every pod."""

from __future__ import annotations

from fractions import Fraction

from dtjob.api.quantity import parse
from dtjob.crd.rule import Rule, Value

_AT = "spec.replicaSpecs.*.resources"
ABOVE_LIMIT = "a request is above the limit of the same resource: lower the request, or raise the limit"
NO_LIMIT = (
    "GPUs, other extended resources and huge pages need a limit, which a request must equal: set limits and remove "
    "their requests"
)


def has_requests_within_limits(resources: Value) -> bool:
    """Whether no request is above its limit."""
    limits = _amounts(resources, "limits")
    return all(amount <= limits.get(name, amount) for name, amount in _amounts(resources, "requests").items())


def has_limits_where_needed(resources: Value) -> bool:
    """Whether each request has an equal limit that is for a resource of which a node never gives more than it has."""
    limits, requests = _amounts(resources, "limits"), _amounts(resources, "requests")
    return all(limits.get(name) == amount for name, amount in requests.items() if _is_never_overcommitted(name))


def _amounts(resources: Value, kind: str) -> dict[str, Fraction]:
    """Those that are quantities; the others have a rule of their own."""
    found = {}
    for name, value in (resources.get(kind) or {}).items():
        try:
            found[name] = parse(value)
        except ValueError:
            continue
    return found


def _is_never_overcommitted(name: str) -> bool:
    """As apimachinery's IsOvercommitAllowed has it."""
    return ("/" in name and "kubernetes.io/" not in name) or name.startswith("hugepages-")


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
        has_requests_within_limits,
        ABOVE_LIMIT,
        "requests",
    ),
    Rule(
        _AT,
        f"{_EACH}!(k.contains('/') && !k.contains('kubernetes.io/') || k.startsWith('hugepages-')) || "
        f"{_HAS_LIMIT} && {_ARE_QUANTITIES} && {_COMPARED} == 0)",
        has_limits_where_needed,
        NO_LIMIT,
        "requests",
    ),
)
