# SPDX-License-Identifier: Apache-2.0
"""How long a job's cluster spec gets, which limits its tasks and its name."""

import bisect
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.job import Job
from dtjob.crd import cel
from dtjob.crd.answers.problems import problems
from dtjob.crd.rules.roles import ALWAYS_FIT, CLUSTER_SPEC_LIMIT, NAME_LIMIT, NAME_RULES
from dtjob.objects import topology
from tests.refusals import job


def cluster_spec(name: str, counts: dict[str, int], port: int) -> str:
    spec = {
        role: [f"{name}-{role}-{index}.{name}:{port}" for index in range(count)]
        for role, count in counts.items()
        if count
    }
    return json.dumps(spec, separators=(",", ":"))


@given(
    name=st.integers(1, 55).map(lambda length: "a" * length),
    counts=st.fixed_dictionaries({"chief": st.integers(0, 1), **dict.fromkeys(("worker", "ps"), st.integers(0, 1200))}),
    port=st.sampled_from([2222, 65535]),
)
def test_the_rule_knows_the_exact_length_of_the_cluster_spec(name: str, counts: dict[str, int], port: int) -> None:
    roles = {role: {"replicas": count} for role, count in counts.items() if count}
    manifest = {"metadata": {"name": name}, "spec": {"replicaSpecs": roles, "network": {"port": port}}}
    length = len(cluster_spec(name, counts, port))
    always = NAME_RULES[-1].cel.replace(f"<= {ALWAYS_FIT} ||", "< 0 ||")
    exact = always.replace(f"<= {CLUSTER_SPEC_LIMIT}", f"== {length}")
    assert exact.count(f"== {length}") == 1
    if roles:
        assert cel.holds(exact, {"self": manifest})


@pytest.mark.parametrize("network", [{}, {"port": 65535}])
def test_the_rule_takes_what_fits_to_the_last_character(network: dict[str, Any]) -> None:
    def fits(name: str, workers: int) -> bool:
        manifest = job("MultiWorkerMirrored", name, replicaSpecs={"worker": {"replicas": workers}}, network=network)
        length = len(topology.cluster_json(Job.model_validate(manifest)))
        assert (problems(manifest) == []) == (length <= CLUSTER_SPEC_LIMIT)
        return length <= CLUSTER_SPEC_LIMIT

    name = "a" * 40
    most = bisect.bisect(range(1000, 1500), False, key=lambda count: not fits(name, count)) + 999
    assert 1000 < most < 1499
    assert fits(name, most)
    assert not fits(name, most + 1)


@pytest.mark.parametrize("role", ["worker", "ps"])
def test_tasks_up_to_the_always_allowed_number_fit_with_the_longest_host_names(role: str) -> None:
    """The CEL does not sum up for fewer."""
    name = "a" * (NAME_LIMIT - len(f"-{role}-{ALWAYS_FIT - 1}"))
    assert len(cluster_spec(name, {"chief": 1, role: ALWAYS_FIT - 1}, 65535)) <= CLUSTER_SPEC_LIMIT
