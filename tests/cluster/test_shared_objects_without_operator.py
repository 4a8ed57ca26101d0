# SPDX-License-Identifier: Apache-2.0
"""Shared objects that changed while no operator looked: drift, a backup, others' additions."""

from tests.cluster.support.jobs import job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.support.shared_objects import FOREIGN, wait_spec
from tools.cluster.rest import Api


def test_additions_of_others_and_defaults_of_the_api_server_are_not_repaired(
    operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """An operator that is started again plans for every job, and finds nothing to repair."""
    jobs = {
        "digits": job(),
        "plain": job("plain", program=False),
        "ps": job("ps", "ParameterServer", network={"port": 4000, "statusPort": 4001}),
    }
    for manifest in jobs.values():
        api.create("dtjobs", namespace, manifest)
    for name in jobs:
        wait_phase(api, namespace, "Running", name)
    for name in jobs:
        api.patch("networkpolicies", namespace, name, FOREIGN)
        api.patch("services", namespace, name, {**FOREIGN, "spec": {"sessionAffinity": "ClientIP"}})

    def versions() -> dict[str, str]:
        items = [one for kind in ("services", "networkpolicies") for one in api.list(kind, namespace)]
        return {f"{one['metadata']['uid']}": one["metadata"]["resourceVersion"] for one in items}

    before = versions()
    operator.restart()
    auto_kubelet.exit("digits-worker-0-0", 1)
    wait_pods(
        api,
        namespace,
        *("digits-chief-0-0", "digits-worker-0-1", "digits-worker-1-0"),
        *("plain-chief-0-0", "plain-worker-0-0", "plain-worker-1-0"),
        *("ps-chief-0-0", "ps-worker-0-0", "ps-worker-1-0", "ps-ps-0-0"),
    )
    wait_phase(api, namespace, "Running")
    assert versions() == before


def test_a_shared_object_that_cannot_be_repaired_is_named_with_its_remedy(
    operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """A Service of ours that came back from a backup with an address, which cannot be taken away from it."""
    api.create("dtjobs", namespace, job())
    wait_phase(api, namespace, "Running")
    operator.kill()
    ours = api.get("services", namespace, "digits")
    api.delete("services", namespace, "digits")
    kept = {name: ours["metadata"][name] for name in ("name", "labels", "ownerReferences")}
    spec = {name: ours["spec"][name] for name in ("selector", "ports")}
    api.create("services", namespace, {"metadata": kept, "spec": spec})
    operator.start()
    blocked = api.wait_for(
        "dtjobs", namespace, "digits", lambda found: found and found["status"]["reason"] == "CannotCreate"
    )
    assert blocked is not None
    assert blocked["status"]["message"].startswith("Service/digits: ")
    assert blocked["status"]["message"].endswith("; delete it, and it is made again")
    api.delete("services", namespace, "digits")
    wait_spec(api, "services", namespace, {**ours["spec"]})
    api.wait_for("dtjobs", namespace, "digits", lambda found: found and found["status"]["reason"] != "CannotCreate")
