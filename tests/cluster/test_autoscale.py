# SPDX-License-Identifier: Apache-2.0
"""An HPA, made by kubectl autoscale and carried out by Kubernetes' own controller, scales a job's workers."""

import json

from tests.cluster.conftest import Kubectl
from tests.cluster.support.autoscaling import Autoscaling
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tests.cluster.test_elastic import elastic, settled, workers_are
from tools.cluster.control_plane import ControlPlane
from tools.cluster.rest import Api, Object

REQUEST = {"requests": {"cpu": "500m"}}


def test_an_hpa_scales_the_workers_up_and_down(
    shared_operator: OperatorProcess,
    cluster: ControlPlane,
    api: Api,
    namespace: str,
    kubectl: Kubectl,
    auto_kubelet: Kubelet,
) -> None:
    made = elastic(2)
    made["spec"]["replicaSpecs"]["worker"]["resources"] = REQUEST
    api.create("dtjobs", namespace, made)
    api.wait_for("dtjobs", namespace, "digits", settled)
    with Autoscaling(cluster, api) as metrics:
        metrics.load = 1000  # 100 % of what two of them request, and 50 % of what four do
        assert "autoscaled" in kubectl("autoscale", "dtjob/digits", "--min=1", "--max=6", "--cpu=50%").stdout
        api.wait_for("dtjobs", namespace, "digits", workers_are(desired=4, replicas=4, reason="AsDesired"))
        assert api.wait_for("dtjobs", namespace, "digits", settled)
        uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]
        assert set(metrics.asked) == {f"training.dtjob.dev/job-uid={uid},training.dtjob.dev/role=worker"}
        metrics.load = 200
        api.wait_for("dtjobs", namespace, "digits", workers_are(desired=1, replicas=1, reason="AsDesired"))
        assert api.wait_for("dtjobs", namespace, "digits", settled)
        hpa: Object = json.loads(kubectl("get", "hpa/digits", "-o", "json").stdout)
        conditions = {one["type"]: one["status"] for one in hpa["status"]["conditions"]}
        assert conditions["AbleToScale"] == "True"
        kubectl("delete", "hpa/digits")
