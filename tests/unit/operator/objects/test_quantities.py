"""Quantities as Kubernetes writes them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from dtjob.objects.quantities import add, of_pod, parse, said, times


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("2", Fraction(2)),
        ("500m", Fraction(1, 2)),
        ("1.5", Fraction(3, 2)),
        ("2Gi", Fraction(2 * 1024**3)),
        ("1e3", Fraction(1000)),
        ("3k", Fraction(3000)),
        ("2E", Fraction(2 * 10**18)),
        (4, Fraction(4)),
    ],
)
def test_a_quantity_is_read(text: str | float, amount: Fraction) -> None:
    assert parse(text) == amount


@pytest.mark.parametrize("text", ["", "much", "1Xi"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)


def test_a_pod_asks_for_what_runs_at_once_or_before_it() -> None:
    spec = {
        "containers": [
            {"name": "a", "resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "2", "nvidia.com/gpu": 1}}},
            {"name": "b", "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}},
            {"name": "c"},
        ],
        "initContainers": [
            {"name": "d", "resources": {"requests": {"memory": "4Gi"}}},
            {"name": "e", "restartPolicy": "Always", "resources": {"requests": {"cpu": "100m"}}},
        ],
    }
    assert said(of_pod(spec)) == "1600m cpu, 4Gi memory, 1 nvidia.com/gpu"


def test_amounts_are_added_and_said() -> None:
    one = {"cpu": Fraction(1, 2), "memory": Fraction(1536 * 1024**2), "pods": Fraction(0)}
    assert said(add(times(one, 3), {"cpu": Fraction(1, 2)})) == "2 cpu, 4608Mi memory"
    assert said({"cpu": Fraction(1, 3)}) == "334m cpu"
    assert said({"memory": Fraction(1000)}) == "1000 memory"
    assert said({}) == ""
