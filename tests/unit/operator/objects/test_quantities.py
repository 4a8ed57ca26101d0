# SPDX-License-Identifier: Apache-2.0
"""Quantities, added up exactly."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.quantity import parse
from dtjob.objects.quantities import added, requests_of, said, text, times


@given(st.integers(0, 10**20), st.sampled_from(["", "m", "u", "n", "k", "Mi", "Gi"]))
def test_a_quantity_is_the_same_after_writing_and_parsing(number: int, suffix: str):
    amount = parse(f"{number}{suffix}")
    assert parse(text(amount)) == amount


def test_a_quantity_is_written_short_and_rounded_up():
    assert [text(parse(one)) for one in ("2000m", "1500m", "1Gi", "0")] == ["2", "1500m", "1073741824", "0"]
    assert text(Fraction(1, 3)) == "333333334n"


def test_sums_are_by_resource():
    assert added([{"cpu": Fraction(1)}, {"cpu": Fraction(2), "a/b": Fraction(3)}]) == {"cpu": 3, "a/b": 3}


def container(requests: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {"resources": {"requests": requests} if requests else {}, **more}


def test_a_pod_asks_for_its_containers_together_or_its_largest_init_container():
    spec = {
        "containers": [
            container({"cpu": "500m", "memory": "1Gi"}),
            {"resources": {"limits": {"cpu": 1, "a/gpu": 2}, "requests": {"cpu": "250m"}}},
            {},
        ],
        "initContainers": [container({"memory": "4Gi"}), container({"cpu": "100m"}, restartPolicy="Always")],
        "overhead": {"cpu": "50m"},
    }
    asked = {name: text(amount) for name, amount in requests_of(spec).items()}
    assert asked == {"cpu": "900m", "memory": str(4 * 1024**3), "a/gpu": "2"}


def sidecar(requests: dict[str, Any]) -> dict[str, Any]:
    return container(requests, restartPolicy="Always")


@pytest.mark.parametrize(
    ("starting", "cpu"),
    [
        ([sidecar({"cpu": 2}), container({"cpu": 4})], "6"),
        ([container({"cpu": 4}), sidecar({"cpu": 2})], "4"),
        ([sidecar({"cpu": 2}), sidecar({"cpu": 3}), container({"cpu": 1})], "6"),
        ([sidecar({"cpu": 2}), container({"cpu": 4}), sidecar({"cpu": 6})], "9"),
    ],
    ids=["beside the one after it", "not beside the one before it", "beside the containers", "both, the larger"],
)
def test_sidecars_run_beside_what_starts_after_them(starting: list[dict[str, Any]], cpu: str) -> None:
    spec = {"containers": [container({"cpu": 1})], "initContainers": starting}
    assert {name: text(amount) for name, amount in requests_of(spec).items()} == {"cpu": cpu}


def test_a_pods_own_requests_replace_those_of_its_containers():
    spec = {
        "containers": [container({"cpu": 1, "a/gpu": 2})],
        "resources": {"requests": {"cpu": 3, "a/gpu": 9}, "limits": {"cpu": 4, "memory": "1Gi"}},
        "overhead": {"cpu": "500m"},
    }
    asked = {name: text(amount) for name, amount in requests_of(spec).items()}
    assert asked == {"cpu": "3500m", "a/gpu": "2", "memory": str(1024**3)}


def test_a_pods_resources_that_are_no_mapping_ask_for_nothing():
    assert requests_of({"containers": [], "resources": ["cpu"], "overhead": {}}) == {}


def test_amounts_are_said_in_words():
    one = {"cpu": Fraction(1, 2), "memory": Fraction(1536 * 1024**2), "pods": Fraction(0)}
    assert (
        said(added([times(one, 3), {"cpu": Fraction(1, 2), "a/gpu": Fraction(1)}])) == "2 cpu, 4608Mi memory, 1 a/gpu"
    )
    assert said({"cpu": Fraction(1, 3)}) == "334m cpu"
    assert said({"memory": Fraction(1000)}) == "1000 memory"
    assert said({}) == ""
