"""The pod: what is ours, what the user's template adds, and what are defaults only."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels, topology
from dtjob.objects.pod import pod
from tests.unit.operator import builders


def spec(job: Job, task: str = "worker-0", attempt: int = 0) -> dict[str, Any]:
    made: dict[str, Any] = pod(job, builders.task(task), attempt)["spec"]
    return made


def training(job: Job, task: str = "worker-0", attempt: int = 0) -> dict[str, Any]:
    found: dict[str, Any] = spec(job, task, attempt)["containers"][0]
    assert found["name"] == "tensorflow"
    return found


def environment(job: Job, task: str = "worker-0", attempt: int = 0) -> dict[str, str]:
    return {one["name"]: one["value"] for one in training(job, task, attempt)["env"] if "value" in one}


def with_template(template: dict[str, Any], **more: Any) -> Job:
    replicas = {"chief": {}, "worker": {"count": 2, "template": template, **more}}
    return builders.job(replicas=replicas)


def test_identity():
    made = spec(builders.job(), attempt=3)
    assert (made["hostname"], made["subdomain"], made["restartPolicy"]) == ("digits-worker-0", "digits", "Never")
    metadata = pod(builders.job(), builders.task("worker-0"), 3)["metadata"]
    assert metadata["name"] == "digits-worker-0-3"
    assert labels.attempt({"metadata": metadata}) == 3


def test_the_supervisor_is_told_all_that_the_contract_lists():
    job = builders.job(
        checkpoint={"directory": "/checkpoints", "everySteps": 100}, strategyOptions={"communication": "Ring"}
    )
    told = environment(job, attempt=2)
    assert told["DTJOB_ATTEMPT"] == "2"
    assert told["DTJOB_RENDEZVOUS"] == "digits-chief-0.digits:2223"
    assert told["DTJOB_CLUSTER_HASH"] == topology.cluster_hash(job)
    assert json.loads(told["DTJOB_STRATEGY_OPTIONS"]) == {"communication": "Ring"}
    assert json.loads(told["DTJOB_CHECKPOINT"])["everySteps"] == 100
    assert told["DTJOB_GRACE_SECONDS"] == str(spec(job)["terminationGracePeriodSeconds"]) == "60"
    assert "TF_CONFIG" not in told
    assert training(job)["command"] == ["python3", "-m", "dtjob_trainer"]


def test_only_the_evaluator_is_told_what_to_evaluate():
    evaluation = {"checkpoints": "Every", "best": {"metric": "loss", "mode": "Min"}}
    job = builders.job(evaluator=True, checkpoint={"directory": "/checkpoints"}, evaluation=evaluation)
    assert json.loads(environment(job, "evaluator-0")["DTJOB_EVALUATION"]) == evaluation
    assert "DTJOB_EVALUATION" not in environment(job, "chief-0")


def test_all_that_train_are_told_what_to_write_for_tensorboard():
    board = {"everySteps": 50, "profile": {"firstStep": 100, "steps": 5}}
    job = builders.job(evaluator=True, checkpoint={"directory": "/checkpoints"}, tensorBoard=board)
    for task in ("chief-0", "worker-1"):  # what a step gives is brought together from all of them
        assert json.loads(environment(job, task)["DTJOB_TENSORBOARD"]) == board
    assert "DTJOB_TENSORBOARD" not in environment(job, "evaluator-0")


def test_checkpoints_are_saved_every_five_minutes_where_nothing_is_said():
    job = builders.job(checkpoint={"directory": "/checkpoints"})
    assert json.loads(environment(job)["DTJOB_CHECKPOINT"])["everySeconds"] == 300


def test_other_images_get_tf_config_which_the_kubelet_expands():
    job = builders.job(program=False)
    env = training(job, "worker-1")["env"]
    order = [one["name"] for one in env]
    assert order.index("DTJOB_CLUSTER") < order.index("TF_CONFIG")
    expanded = environment(job, "worker-1")["TF_CONFIG"].replace("$(DTJOB_CLUSTER)", topology.cluster_json(job))
    assert json.loads(expanded) == json.loads(topology.tf_config(job, builders.task("worker-1")))
    assert "command" not in training(job)


def test_a_users_dollar_is_a_dollar():
    job = builders.job(program={"entry": "a.py", "args": ["--cost=$(HOME)"]})
    assert training(job)["args"] == ["a.py", "--cost=$$(HOME)"]


def test_the_template_adds_and_overrides_defaults_but_not_what_is_ours():
    mount = {"name": "data", "mountPath": "/data"}
    training_container = {"name": "tensorflow", "env": [{"name": "A", "value": "1"}], "volumeMounts": [mount]}
    pod_spec = {
        "nodeSelector": {"gpu": "a100"},
        "securityContext": {"runAsUser": 0},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "log-shipper", "image": "shipper"}, training_container],
    }
    metadata = {"labels": {"team": "vision"}, "annotations": {"note": "x"}}
    job = with_template({"metadata": metadata, "spec": pod_spec})
    made = pod(job, builders.task("worker-0"), 0)
    assert labels.of(made)["team"] == "vision"
    assert made["spec"]["nodeSelector"] == {"gpu": "a100"}
    assert made["spec"]["securityContext"] == {"runAsUser": 0}
    assert [one["name"] for one in made["spec"]["containers"]] == ["tensorflow", "log-shipper"]
    assert environment(job)["A"] == "1"
    assert environment(job)["DTJOB_ROLE"] == "worker"
    assert [one["name"] for one in made["spec"]["volumes"]] == ["dtjob-cluster", "data"]
    assert [one["mountPath"] for one in training(job)["volumeMounts"]] == ["/etc/dtjob", "/data"]
    assert "nodeSelector" not in spec(job, "chief-0")


def test_making_a_pod_changes_neither_the_job_nor_the_next_pod():
    job = with_template({"spec": {"containers": [{"name": "tensorflow", "env": [{"name": "A", "value": "1"}]}]}})
    first = pod(job, builders.task("worker-0"), 0)
    first["spec"]["containers"][0]["env"].clear()
    assert environment(job)["A"] == "1"


@pytest.mark.parametrize("mount", ["Chief", "All"])
def test_who_mounts_the_checkpoints(mount: str):
    volume = {"persistentVolumeClaim": {"claimName": "digits"}}
    job = builders.job(evaluator=True, checkpoint={"directory": "/checkpoints", "volume": volume, "mount": mount})

    def mounts(task: str) -> bool:
        return "/checkpoints" in [one["mountPath"] for one in training(job, task)["volumeMounts"]]

    assert mounts("chief-0")
    assert mounts("evaluator-0")
    assert mounts("worker-0") == (mount == "All")
    assert ("affinity" in spec(job, "evaluator-0")) == (mount == "Chief")
    assert "affinity" not in spec(job, "worker-0")


def test_restricted_by_default():
    made = spec(builders.job())
    assert made["securityContext"]["runAsNonRoot"] is True
    assert made["automountServiceAccountToken"] is False
    assert made["enableServiceLinks"] is False
    assert training(builders.job())["securityContext"]["allowPrivilegeEscalation"] is False
    assert training(builders.job())["terminationMessagePolicy"] == "FallbackToLogsOnError"
