"""Kubernetes' quantities: what pods ask for, added up, and said to people."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

_BINARY: dict[str, int] = {f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTPE", start=1)}
_DECIMAL: dict[str, Fraction] = {unit: Fraction(1, 1000**power) for power, unit in enumerate("mun", start=1)} | {
    unit: Fraction(1000**power) for power, unit in enumerate("kMGTPE", start=1)
}
_OF_BYTES = ("memory", "ephemeral-storage", "hugepages-")

Amounts = dict[str, Fraction]
"""Resource to amount: cores, bytes, or pieces."""


def parse(text: str | float) -> Fraction:
    """The amount that a quantity such as `500m`, `2Gi` or `1e3` says. Raises ValueError on what is none."""
    text = str(text)
    if text[-2:] in _BINARY:
        return Fraction(text[:-2]) * _BINARY[text[-2:]]
    if text[-1:] in _DECIMAL:
        return Fraction(text[:-1]) * _DECIMAL[text[-1:]]
    return Fraction(text)


def of_pod(spec: Mapping[str, Any]) -> Amounts:
    """What a pod asks for, as the scheduler counts it: its containers and sidecars together, or an init container that
    asks for more. Limits stand in where there are no requests."""
    inits = spec.get("initContainers") or ()
    together = add(*(_asked(one) for one in (*(spec.get("containers") or ()), *filter(_is_sidecar, inits))))
    for one in inits:
        for name, amount in _asked(one).items():
            together[name] = max(together.get(name, Fraction(0)), amount)
    return together


def add(*amounts: Mapping[str, Fraction]) -> Amounts:
    """The sum."""
    total: Amounts = {}
    for one in amounts:
        for name, amount in one.items():
            total[name] = total.get(name, Fraction(0)) + amount
    return total


def times(amounts: Mapping[str, Fraction], number: int) -> Amounts:
    """So many of these."""
    return {name: amount * number for name, amount in amounts.items()}


def said(amounts: Mapping[str, Fraction]) -> str:
    """In words: `3 cpu, 6Gi memory`; cpu first, then memory, then the others by name."""
    order = sorted(amounts, key=lambda name: (name != "cpu", name != "memory", name))
    return ", ".join(f"{_number(name, amounts[name])} {name}" for name in order if amounts[name])


def _asked(container: Mapping[str, Any]) -> Amounts:
    resources = container.get("resources") or {}
    asked = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: parse(value) for name, value in asked.items()}


def _is_sidecar(init: Mapping[str, Any]) -> bool:
    return init.get("restartPolicy") == "Always"


def _number(name: str, amount: Fraction) -> str:
    if name.startswith(_OF_BYTES):
        for unit, size in reversed(_BINARY.items()):
            if amount % size == 0 and amount >= size:
                return f"{amount // size}{unit}"
    if amount.denominator == 1:
        return str(amount.numerator)
    milli = amount * 1000
    return f"{-(-milli.numerator // milli.denominator)}m"  # rounded up, as Kubernetes does
