# SPDX-License-Identifier: Apache-2.0
"""Requests and limits: the rules over any amounts."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.crd.answers.problems import problems, to_job
from dtjob.crd.rules.resources import SINGLE_HOST_TOPOLOGIES
from dtjob.objects.pod.pod import pod
from tests.refusals.manifests import Manifest, job, options
from tests.unit.operator import builders

amounts = st.none() | st.integers(0, 5)
NAMES = ("cpu", "nvidia.com/gpu", "hugepages-2Mi")


def resources(name: str, request: int | None, limit: int | None) -> Manifest:
    given = {"requests": request, "limits": limit}
    return {kind: {name: amount} for kind, amount in given.items() if amount is not None}


@given(st.sampled_from(NAMES), amounts, amounts)
def test_requests_above_limits_and_unequal_extended_resources_are_refused(
    name: str, request: int | None, limit: int | None
) -> None:
    more = request is not None and limit is not None and request > limit
    unequal = name != "cpu" and request is not None and request != limit
    manifest = job(replicaSpecs={"chief": {"resources": resources(name, request, limit)}})
    assert bool(problems(manifest)) == (more or unequal)


@pytest.mark.parametrize("topology", SINGLE_HOST_TOPOLOGIES)
def test_a_slice_of_one_host_is_taken_and_its_chips_are_asked_for(topology: str) -> None:
    manifest = options("TPU", tpu={"accelerator": "tpu-v5-lite-podslice", "topology": topology})
    assert problems(manifest) == []
    container = pod(to_job(manifest), builders.task("chief-0"), 0)["spec"]["containers"][0]
    chips = container["resources"]["limits"]["google.com/tpu"]
    assert chips == prod(int(side) for side in topology.split("x"))
    assert chips in (1, 2, 4, 8)  # all that a host of GKE's has


def test_the_address_of_the_nodes_own_tpu_may_be_written_out() -> None:
    tpu = {"accelerator": "tpu-v5-lite-podslice", "topology": "2x2", "address": "local"}
    assert problems(options("TPU", tpu=tpu)) == []
