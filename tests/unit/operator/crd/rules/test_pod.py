# SPDX-License-Identifier: Apache-2.0
"""What belongs to dtjob in a pod: the rules over any form of a template."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.spec.network import Network
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


PORTS = st.sampled_from([2221, 2222, 2223, 2224])


@given(st.fixed_dictionaries({}, optional={"port": PORTS, "statusPort": PORTS, "rendezvousPort": PORTS}))
def test_the_ports_of_dtjob_differ(network: dict[str, int]) -> None:
    whole = Network.model_validate(network)
    ports = [whole.port, whole.status_port, whole.rendezvous_port]
    assert (problems(job(network=network)) == []) is (len(set(ports)) == 3)


@given(own=PORTS, of_the_sidecar=PORTS, with_program=st.booleans())
def test_a_sidecar_has_none_of_the_ports_of_dtjob(own: int, of_the_sidecar: int, with_program: bool) -> None:
    network = {"port": own, "statusPort": 3000, "rendezvousPort": 2224}
    sidecar = {"name": "log", "image": "log", "ports": [{"containerPort": of_the_sidecar}]}
    spec = {"replicaSpecs": pod(containers=[sidecar]), "network": network}
    found = problems(job(**spec) if with_program else job(program=..., **spec))
    taken = {own, 2224} if with_program else {own}
    differ = own != 2224 or not with_program
    assert (found == []) is (of_the_sidecar not in taken and differ)
