"""Slices of one host."""

from __future__ import annotations

from math import prod

import pytest

from dtjob.crd.problems import problems, to_job
from dtjob.crd.rules_tpu import SINGLE_HOST_TOPOLOGIES
from dtjob.objects.pod.pod import pod
from tests.refusals.manifests import options
from tests.unit.operator import builders


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
