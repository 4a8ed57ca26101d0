# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' quantities (4, 500m, 16Gi): added up exactly, as requests of several pods are."""

import math
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

from dtjob.api.quantity import SUFFIXES, parse

_BINARY = [name for name in SUFFIXES if name.endswith("i")]
_OF_BYTES = ("memory", "ephemeral-storage", "hugepages-")
_OF_PODS = ("cpu", "memory")
"""The resources that a pod may ask for as a whole, beside huge pages."""
_PARTS = (("", Fraction(1)), *((name, SUFFIXES[name]) for name in "mun"))
"""Whole numbers first, then the largest part of one that is exact."""

Amounts = Mapping[str, Fraction]
"""Resource to how much of it."""


def text(amount: Fraction) -> str:
    """A number as a quantity; what is finer than a billionth is rounded up, as an API server does."""
    for suffix, size in _PARTS:
        if (amount / size).denominator == 1:
            return f"{amount / size}{suffix}"
    return f"{-(-amount // SUFFIXES['n'])}n"


def added(some: Iterable[Amounts]) -> dict[str, Fraction]:
    """The sum of these, resource by resource."""
    total: dict[str, Fraction] = {}
    for amounts in some:
        for name, amount in amounts.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def requests_of(pod_spec: Mapping[str, Any]) -> dict[str, Fraction]:
    """What a pod asks of its node, as the scheduler counts it (KEP-753), with the pod's own resources and its overhead.

    Sidecars are init containers that are restarted. They run beside the containers, and beside each init container
    after them. A limit stands for a request that is left out. Raises ValueError on what is no quantity.
    """
    running = added(_of_container(one) for one in pod_spec.get("containers") or ())
    sidecars: Amounts = {}
    starting: Amounts = {}
    for one in pod_spec.get("initContainers") or ():
        asked = added([sidecars, _of_container(one)])
        starting = _larger(starting, asked)
        if one.get("restartPolicy") == "Always":
            sidecars = asked
    containers = _larger(added([running, sidecars]), starting)
    return added([{**containers, **_of_whole_pod(pod_spec, containers)}, _parsed(pod_spec.get("overhead"))])


def times(amounts: Amounts, number: int) -> dict[str, Fraction]:
    """So many of these."""
    return {name: amount * number for name, amount in amounts.items()}


def said(amounts: Amounts) -> str:
    """In words: `3 cpu, 6Gi memory`; cpu first, then memory, then the others by name."""
    order = sorted(amounts, key=lambda name: (name != "cpu", name != "memory", name))
    return ", ".join(f"{_number(name, amounts[name])} {name}" for name in order if amounts[name])


def _number(name: str, amount: Fraction) -> str:
    if name.startswith(_OF_BYTES):
        for suffix in reversed(_BINARY):
            if (amount / SUFFIXES[suffix]).denominator == 1:
                return f"{amount / SUFFIXES[suffix]}{suffix}"
    return str(amount) if amount.denominator == 1 else f"{math.ceil(amount * 1000)}m"


def _larger(one: Amounts, other: Amounts) -> dict[str, Fraction]:
    return {name: max(one.get(name, Fraction(0)), other.get(name, Fraction(0))) for name in {**one, **other}}


def _of_container(container: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = container.get("resources") or {}
    return {**_parsed(resources.get("limits")), **_parsed(resources.get("requests"))}


def _of_whole_pod(pod_spec: Mapping[str, Any], containers: Amounts) -> dict[str, Fraction]:
    """The requests of the pod itself (KEP-2837), which replace those of its containers."""
    resources = pod_spec.get("resources")
    if not isinstance(resources, Mapping):
        return {}
    limits = {name: amount for name, amount in _parsed(resources.get("limits")).items() if name not in containers}
    asked = {**limits, **_parsed(resources.get("requests"))}
    return {name: amount for name, amount in asked.items() if name in _OF_PODS or name.startswith("hugepages-")}


def _parsed(amounts: Any) -> dict[str, Fraction]:
    return {name: parse(value) for name, value in amounts.items()} if isinstance(amounts, Mapping) else {}
