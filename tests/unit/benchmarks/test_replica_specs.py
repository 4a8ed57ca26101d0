# SPDX-License-Identifier: Apache-2.0
"""The tasks of a benchmark's job."""

from benchmarks.replica_specs import replica_specs
from dtjob.api.spec.replica_specs import ReplicaSpecs, Role


def test_each_role_has_its_number_and_what_all_get() -> None:
    made = replica_specs({"chief": 1, "worker": 3, "ps": 2}, resources={"limits": {"cpu": 1}})
    specs = ReplicaSpecs.model_validate(made)
    found = {role.value: block for role in Role if (block := specs.get(role))}
    assert {role: block.replicas for role, block in found.items()} == {"chief": 1, "worker": 3, "ps": 2}
    assert all(block.resources and block.resources.limits == {"cpu": 1} for block in found.values())
