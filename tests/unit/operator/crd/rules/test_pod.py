# SPDX-License-Identifier: Apache-2.0
"""What belongs to dtjob in a pod: the rules over any form of a template."""

from __future__ import annotations

import pytest

from dtjob.crd.answers.problems import problems
from tests.refusals.manifests import job, pod

LOG = {"name": "log", "image": "fluent-bit"}


@pytest.mark.parametrize(
    ("amount", "taken"),
    [
        *((amount, True) for amount in (1, "4", "500m", "16Gi", "1e9", "1E-3", ".5", "5.", "-1", "+2k", "100n")),
        *((amount, False) for amount in ("16GB", "", "m", "1 Gi", "1e", "four", "1.2.3", "0x1", "16gi", "1\n")),
    ],
)
def test_amounts_have_the_form_of_kubernetes_quantities(amount: str | int, taken: bool) -> None:
    manifest = job(replicaSpecs={"chief": {"resources": {"limits": {"memory": amount}}}})
    assert (problems(manifest) == []) == taken


def test_containers_without_names_in_common_are_taken() -> None:
    containers = [LOG, {"name": "tensorflow"}]
    assert problems(job(replicaSpecs=pod(containers=containers, initContainers=[{**LOG, "name": "get"}]))) == []
    (found,) = problems(job(replicaSpecs=pod(containers=containers, initContainers=[LOG])))
    assert found.field == "spec.replicaSpecs.worker.template.spec.initContainers"
