# SPDX-License-Identifier: Apache-2.0
"""The pod: what is ours, what the user's template adds, and what are defaults only."""

from typing import Any

import pytest

from dtjob.api.job import Job
from dtjob.objects import labels
from dtjob.objects.pod.pod import pod
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
    replicas = {"chief": {}, "worker": {"replicas": 2, "template": template, **more}}
    return builders.job(replicaSpecs=replicas)


def test_a_pod_has_the_name_and_the_host_name_of_its_task_and_attempt():
    made = spec(builders.job(), attempt=3)
    assert (made["hostname"], made["subdomain"], made["restartPolicy"]) == ("digits-worker-0", "digits", "Never")
    metadata = pod(builders.job(), builders.task("worker-0"), 3)["metadata"]
    assert metadata["name"] == "digits-worker-0-3"
    assert metadata["labels"][labels.ATTEMPT] == "3"


def test_a_program_is_run_by_the_supervisor_and_another_image_runs_itself():
    assert training(builders.job())["command"] == ["python3", "-m", "dtjob_trainer"]
    assert "command" not in training(builders.job(program=False))
    assert "DTJOB_TERMINATION_LOG" not in environment(builders.job(program=False))


def test_the_supervisor_leaves_its_last_words_where_the_kubelet_looks():
    assert environment(builders.job())["DTJOB_TERMINATION_LOG"] == "/dev/termination-log"
    job = with_template({"spec": {"containers": [{"name": "tensorflow", "terminationMessagePath": "/tmp/end"}]}})
    assert environment(job)["DTJOB_TERMINATION_LOG"] == "/tmp/end"
    assert environment(job, "chief-0")["DTJOB_TERMINATION_LOG"] == "/dev/termination-log"


@pytest.mark.parametrize(
    ("template", "policy"),
    [
        ({}, None),
        ({"hostNetwork": True}, "ClusterFirstWithHostNet"),
        ({"hostNetwork": True, "dnsPolicy": "None"}, "None"),
    ],
)
def test_tasks_on_the_hosts_network_find_each_others_names(template: dict[str, Any], policy: str | None):
    assert spec(with_template({"spec": template})).get("dnsPolicy") == policy


def test_the_kubelet_expands_arguments_and_not_the_entrypoint():
    job = builders.job(program={"entrypoint": "$(A).py", "args": ["--rate=$(RATE)", "--cost=5$$"]})
    assert training(job)["args"] == ["$$(A).py", "--rate=$(RATE)", "--cost=5$$"]


def test_variables_of_secrets_reach_every_task_beside_those_of_its_template():
    secret, template = {"secretRef": {"name": "wandb"}}, {"configMapRef": {"name": "more"}}
    job = builders.job(program={"entrypoint": "a.py", "envFrom": [secret]})
    assert training(job, "chief-0")["envFrom"] == [secret]
    own = with_template({"spec": {"containers": [{"name": "tensorflow", "envFrom": [template]}]}})
    own.spec.program = job.spec.program
    assert training(own, "worker-0")["envFrom"] == [secret, template]


def test_a_template_adds_fields_and_overrides_defaults_but_not_fields_of_dtjob():
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
    assert made["spec"]["securityContext"]["runAsUser"] == 0
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
def test_mount_on_decides_which_tasks_mount_the_checkpoints(mount: str):
    volume = {"persistentVolumeClaim": {"claimName": "digits"}}
    job = builders.job(evaluator=True, checkpoint={"storage": {"volume": volume, "mountOn": mount}})

    def mounts(task: str) -> bool:
        return "/checkpoints" in [one["mountPath"] for one in training(job, task)["volumeMounts"]]

    assert mounts("chief-0")
    assert mounts("evaluator-0")
    assert mounts("worker-0") == (mount == "All")
    assert ("affinity" in spec(job, "evaluator-0")) == (mount == "Chief")
    assert "affinity" not in spec(job, "worker-0")


def test_a_pod_satisfies_the_restricted_profile_by_default():
    made = spec(builders.job())
    assert made["securityContext"]["runAsNonRoot"] is True
    assert made["automountServiceAccountToken"] is False
    assert made["enableServiceLinks"] is False
    assert training(builders.job())["securityContext"]["allowPrivilegeEscalation"] is False
    assert training(builders.job())["terminationMessagePolicy"] == "FallbackToLogsOnError"


@pytest.mark.parametrize(
    ("source", "volume", "folder"),
    [
        ({"configMap": {"name": "files"}}, {"configMap": {"name": "files"}}, ""),
        ({"volume": {"image": {"reference": "code:1"}}}, {"image": {"reference": "code:1"}}, ""),
        ({"volume": {"csi": {"driver": "a"}}, "path": "b/c"}, {"csi": {"driver": "a"}}, "/b/c"),
    ],
)
def test_the_files_of_a_program_are_mounted_into_every_pod(source: Any, volume: Any, folder: str) -> None:
    program = {"entrypoint": "a.py", "source": source, "requirements": "more.txt"}
    job = builders.job(program=program)
    for task in ("chief-0", "worker-0"):
        assert {"name": "dtjob-source", **volume} in spec(job, task)["volumes"]
        mount = {"name": "dtjob-source", "mountPath": "/etc/dtjob-source", "readOnly": True}
        assert mount in training(job, task)["volumeMounts"]
        assert environment(job, task)["DTJOB_SOURCE"] == f"/etc/dtjob-source{folder}"
        assert environment(job, task)["DTJOB_REQUIREMENTS"] == "more.txt"
    assert "dtjob-source" not in str(spec(builders.job()))
