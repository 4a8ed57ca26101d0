# SPDX-License-Identifier: Apache-2.0
"""A job from `kubectl apply` to its end, against a real API server; the kubelet's part is played by a helper."""

import json
from pathlib import Path

from tests.cluster.conftest import Kubectl
from tests.cluster.support.jobs import GROUP, columns, job, wait_phase, wait_pods
from tests.cluster.support.kubelet import Kubelet
from tests.cluster.support.operator_process import OperatorProcess
from tools.cluster.rest import Api, Object

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
DIGITS = ("digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0", "digits-evaluator-0-0")


def environment(pod: Object) -> dict[str, str]:
    return {item["name"]: item.get("value", "") for item in pod["spec"]["containers"][0]["env"]}


def test_the_example_becomes_service_config_map_and_pods(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    kubectl("apply", "-f", str(EXAMPLES / "digits.yaml"))
    pods = wait_pods(api, namespace, *DIGITS)
    uid = api.get("dtjobs", namespace, "digits")["metadata"]["uid"]
    (config_map,) = [m for m in api.list("configmaps", namespace) if m["metadata"]["name"].startswith("digits-")]
    service = api.get("services", namespace, "digits")
    policy = api.get("networkpolicies", namespace, "digits")
    for child in (*pods.values(), config_map, service, policy):
        (owner,) = child["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("DistributedTrainingJob", uid, True)
    assert json.loads(config_map["data"]["cluster.json"]) == {
        "chief": ["digits-chief-0.digits:2222"],
        "worker": ["digits-worker-0.digits:2222", "digits-worker-1.digits:2222"],
    }
    assert config_map["immutable"] is True
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["publishNotReadyAddresses"] is True
    selector = service["spec"]["selector"]
    for name, pod in pods.items():
        assert selector.items() <= pod["metadata"]["labels"].items()
        assert pod["spec"]["hostname"] == name.removesuffix("-0")
        assert pod["spec"]["subdomain"] == "digits"
        assert pod["spec"]["restartPolicy"] == "Never"
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert environment(pod)["DTJOB_RENDEZVOUS_ADDRESS"] == "digits-chief-0.digits:2224"
    assert "finalizers" not in api.get("dtjobs", namespace, "digits")["metadata"]


def test_columns_at_every_stage_and_collection_at_the_end(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubectl: Kubectl, kubelet: Kubelet
) -> None:
    kubectl("apply", "-f", str(EXAMPLES / "digits.yaml"))
    wait_pods(api, namespace, *DIGITS)
    wait_phase(api, namespace, "Pending")
    assert columns(kubectl) | {"AGE": ""} == {
        "NAME": "digits",
        "PHASE": "Pending",
        "READY": "0/4",
        "STEP": "",
        "RESTARTS": "0",
        "REASON": "WaitingForPods",
        "AGE": "",
    }
    for name in DIGITS:
        kubelet.run(name)
    api.wait_for("dtjobs", namespace, "digits", lambda found: found and found["status"]["ready"] == "4/4")
    assert columns(kubectl)["PHASE"] == "Running"
    kubelet.exit("digits-worker-1-0", 3, message="ValueError: no such column")
    wait_phase(api, namespace, "Restarting")
    kubelet.run("digits-worker-1-1")
    wait_phase(api, namespace, "Running")
    assert columns(kubectl)["RESTARTS"] == "1"
    wide = columns(kubectl, "-o", "wide")
    assert {"STRATEGY", "PROGRESS(%)", "ETA(S)", "CHECKPOINT", "GOODPUT(%)", "WORKERS"} <= wide.keys()
    final = {"step": 460, "totalSteps": 460, "loss": 0.05, "metrics": {"val_accuracy": 0.97}}
    kubelet.exit("digits-chief-0-0", 0, message=json.dumps(final))
    done = wait_phase(api, namespace, "Succeeded")
    assert columns(kubectl)["STEP"] == "460"
    assert columns(kubectl, "-o", "wide")["PROGRESS(%)"] == "100"
    assert done["status"]["progress"]["metrics"] == [
        {"name": "loss", "value": "0.05"},
        {"name": "val_accuracy", "value": "0.97"},
    ]
    assert "condition met" in kubectl("wait", "--for=condition=Complete", "dtjob/digits", "--timeout=5s").stdout
    assert "digits" in kubectl("get", "dtj", "--field-selector=status.phase=Succeeded").stdout
    assert "digits" not in kubectl("get", "dtj", "--field-selector=status.phase=Running").stdout
    events = kubectl("get", "events", "--field-selector=involvedObject.name=digits").stdout
    assert "worker-1 failed (exit code 3)" in events
    kubectl("delete", "dtjob", "digits")
    for kind in ("pods", "services", "networkpolicies"):
        api.wait(kind, namespace, lambda found: not found)
    api.wait("configmaps", namespace, lambda found: not any(name.startswith("digits") for name in found))


def test_an_image_of_ones_own_gets_tf_config(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    api.create("dtjobs", namespace, job(program=False))
    pods = wait_pods(api, namespace, "digits-chief-0-0", "digits-worker-0-0", "digits-worker-1-0")
    variables = pods["digits-worker-1-0"]["spec"]["containers"][0]["env"]
    names = [variable["name"] for variable in variables]
    assert names.index("DTJOB_CLUSTER") < names.index("TF_CONFIG")
    reference = variables[names.index("DTJOB_CLUSTER")]["valueFrom"]["configMapKeyRef"]
    cluster = api.get("configmaps", namespace, reference["name"])["data"][reference["key"]]
    # What the kubelet makes of it: $(NAME) replaced by the variable's value.
    expanded = environment(pods["digits-worker-1-0"])["TF_CONFIG"].replace("$(DTJOB_CLUSTER)", cluster)
    config = json.loads(expanded)
    assert config["task"] == {"type": "worker", "index": 1}
    assert config["cluster"]["worker"][1] == "digits-worker-1.digits:2222"


def test_a_template_that_the_api_server_refuses_is_named(
    shared_operator: OperatorProcess, api: Api, namespace: str, kubelet: Kubelet
) -> None:
    manifest = job()
    manifest["spec"]["replicaSpecs"]["worker"]["template"] = {"spec": {"nodeSelectr": {"disk": "ssd"}}}
    api.create("dtjobs", namespace, manifest)
    blocked = api.wait_for(
        "dtjobs", namespace, "digits", lambda f: f and f.get("status", {}).get("reason") == "CannotCreate"
    )
    assert blocked is not None
    assert 'unknown field "spec.nodeSelectr"' in blocked["status"]["message"]
    conditions = {c["type"]: c["status"] for c in blocked["status"]["conditions"]}
    assert conditions["Blocked"] == "True"
    assert f"{GROUP}/v1beta1" == blocked["apiVersion"]
