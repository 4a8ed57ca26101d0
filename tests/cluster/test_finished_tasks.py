# SPDX-License-Identifier: Apache-2.0
"""Work that is done is not done again, whatever becomes of its pods, against a real API server."""

from tests.cluster.support.jobs import job, uids, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

THREE = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")


def test_a_finished_workers_pod_may_go(
    operator: OperatorProcess, api: Api, namespace: str, auto_kubelet: Kubelet
) -> None:
    """Without a supervisor a failure would take the whole group with it; the operator is away for the second one."""
    api.create("dtjobs", namespace, job(program=False))
    wait_phase(api, namespace, "Running")
    before = uids(wait_pods(api, namespace, *THREE))
    auto_kubelet.succeed("digits-worker-0-0")
    auto_kubelet.succeed("digits-worker-1-0")

    def remembered(found: Object | None) -> bool:
        finished = (found or {}).get("status", {}).get("internal", {}).get("finished")
        return finished == [{"role": "worker", "attempt": 0, "indexes": "0-1"}]

    api.wait_for("dtjobs", namespace, "digits", remembered)
    auto_kubelet.drain("digits-worker-0-0")
    wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-1-0")
    operator.kill()
    api.delete("pods", namespace, "digits-worker-1-0", grace=0)
    service = api.get("services", namespace, "digits")["metadata"]["uid"]
    api.delete("services", namespace, "digits")
    operator.start()
    # That it is made again shows that the operator has looked at the job.
    api.wait_for("services", namespace, "digits", lambda found: found and found["metadata"]["uid"] != service)
    auto_kubelet.succeed("digits-chief-0-0")
    done = wait_phase(api, namespace, "Succeeded")
    assert done["status"]["restarts"]["total"] == 0
    assert done["status"]["replicaStatuses"]["worker"] == {"replicas": 2, "succeeded": 2}
    assert uids(wait_pods(api, namespace, "digits-chief-0-0")) == {"digits-chief-0-0": before["digits-chief-0-0"]}
