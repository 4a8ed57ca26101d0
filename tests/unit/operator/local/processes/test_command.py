# SPDX-License-Identifier: Apache-2.0
import json
import os
from pathlib import Path

from dtjob.api.spec.program import Program
from dtjob.local.processes.addresses import Addresses
from dtjob.local.processes.command import Directories, expand, local_command, only_in_a_cluster
from dtjob.objects import topology
from dtjob.objects.pod.pod import pod
from tests.unit.operator.builders import job

RUN = Path("/runs/run-1")


def job_with(**program):
    digits = job()
    return digits.model_copy(
        update={"spec": digits.spec.model_copy(update={"program": Program.model_validate(program)})}
    )


def command_of(digits, task_id="worker-1", inherited=None, devices=None):
    task = next(task for task in topology.tasks(digits) if task.id == task_id)
    addresses = Addresses.choose(digits)
    made = local_command(
        pod(digits, task, 2),
        addresses,
        Directories(RUN / "cluster.json", RUN / "checkpoints", RUN / "logs"),
        inherited or {},
        devices,
        python="python",
    )
    return made, addresses


def test_expansion_is_that_of_kubernetes():
    variables = {"A": "1", "B": "$(A)"}
    for text, wanted in {
        "$(A)": "1",
        "$$(A)": "$(A)",
        "$$$(A)": "$1",
        "$(UNKNOWN)": "$(UNKNOWN)",
        "$(B)": "$(A)",
        "$(A$(A))": "$(A$(A))",
        "$($(A)": "$($(A)",
        "$(A) $(A": "1 $(A",
        "$A $": "$A $",
        "$()": "$()",
        "cost: 5$$": "cost: 5$",
    }.items():
        assert expand(text, variables) == wanted


def test_the_supervisor_runs_the_program_with_its_arguments_expanded_as_in_a_pod():
    variables = [{"name": "RATE", "value": "0.1"}, {"name": "ALSO", "value": "$(RATE)$$(RATE)"}]
    args = ["--name=$HOME", "a b", "$(DTJOB_ROLE)", "$$(RATE)", "--rate=$(RATE)", "$(ALSO)", "$(NONE)"]
    made, _ = command_of(job_with(entrypoint="digits.py", args=args, env=variables))
    expected = ["--name=$HOME", "a b", "worker", "$(RATE)", "--rate=0.1", "0.1$(RATE)", "$(NONE)"]
    assert made.argv == ["python", "-m", "dtjob_trainer", "digits.py", *expected]


def test_a_dollar_of_the_entrypoint_is_a_dollar():
    made, _ = command_of(job_with(entrypoint="$(HOME)/$$.py"))
    assert made.argv[-1] == "$(HOME)/$$.py"


def test_addresses_and_paths_are_local_and_all_else_is_the_pods():
    digits = job(checkpoint={"storage": {"volume": {"emptyDir": {}}}, "everySteps": 7})
    made, addresses = command_of(digits)
    environment = made.environment
    assert environment["DTJOB_ROLE"] == "worker"
    assert (environment["DTJOB_INDEX"], environment["DTJOB_ATTEMPT"]) == ("1", "2")
    assert environment["DTJOB_CLUSTER_FILE"] == "/runs/run-1/cluster.json"
    assert environment["DTJOB_TERMINATION_LOG"] == "/runs/run-1/logs/digits-worker-1-2.last.json"
    assert environment["DTJOB_CLUSTER_HASH"] == topology.cluster_hash(digits)
    assert environment["DTJOB_STATUS_PORT"] == str(addresses.status_port("digits-worker-1"))
    assert environment["DTJOB_RENDEZVOUS_ADDRESS"] == f"127.0.0.1:{addresses.ports['digits-chief-0'].rendezvous}"
    assert environment["DTJOB_PARENT"] == str(os.getpid())
    settings = json.loads(environment["DTJOB_CHECKPOINT"])
    assert settings["directory"] == "/runs/run-1/checkpoints"
    assert settings["everySteps"] == 7


def test_an_argument_below_the_checkpoint_directory_is_below_that_of_the_run():
    """Others stay as they are, also those that only contain its name."""
    digits = job(checkpoint={"storage": {"volume": {"emptyDir": {}}, "mountPath": "/saved.here"}}, program=True)
    for argument, expected in {
        "--model=/saved.here/model.keras": "--model=/runs/run-1/checkpoints/model.keras",
        "/saved.here": "/runs/run-1/checkpoints",
        "--to=/saved.here/": "--to=/runs/run-1/checkpoints/",
        "/data/saved.here/x": "/data/saved.here/x",
        "/saved.hereafter": "/saved.hereafter",
        "/savedXhere/x": "/savedXhere/x",
    }.items():
        spec = digits.spec.model_copy(update={"program": Program(entrypoint="x.py", args=[argument])})
        made, _ = command_of(digits.model_copy(update={"spec": spec}))
        assert made.argv[-1] == expected


def test_a_bucket_stays_a_bucket():
    made, _ = command_of(job(checkpoint={"storage": {"uri": "gs://bucket/digits"}}))
    assert json.loads(made.environment["DTJOB_CHECKPOINT"])["directory"] == "gs://bucket/digits"


def test_the_programs_own_variables_are_there():
    digits = job_with(entrypoint="x.py", env=[{"name": "MODE", "value": "fast"}, {"name": "COST", "value": "$5"}])
    made, _ = command_of(digits)
    assert made.environment["MODE"] == "fast"
    assert made.environment["COST"] == "$5"


def test_parts_of_a_pod_that_a_local_process_lacks_are_named():
    template = {
        "spec": {
            "containers": [
                {
                    "name": "tensorflow",
                    "env": [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {}}}],
                    "envFrom": [{"secretRef": {"name": "wandb"}}, {"configMapRef": {"name": "more"}}],
                },
                {"name": "proxy", "image": "proxy"},
            ],
            "initContainers": [{"name": "fetch", "image": "fetch"}],
        }
    }
    digits = job(replicaSpecs={"chief": {"template": template}, "worker": {"replicas": 1}})
    chief, worker = topology.tasks(digits)
    assert only_in_a_cluster(pod(digits, chief, 0)) == [
        "container proxy",
        "init container fetch",
        "variable TOKEN (valueFrom)",
        "variables of secret wandb",
        "variables of configMap more",
    ]
    assert only_in_a_cluster(pod(digits, worker, 0)) == []


def test_gpus_are_those_of_this_machine():
    """A job for a cluster with GPUs is tried here without."""
    gpu = {"resources": {"limits": {"nvidia.com/gpu": 1}}}
    digits = job(replicaSpecs={"chief": {}, "worker": {"replicas": 2, **gpu}})
    made, _ = command_of(digits)
    assert "DTJOB_GPUS" not in made.environment
    task = next(task for task in topology.tasks(digits) if task.id == "worker-1")
    assert "DTJOB_GPUS" in str(pod(digits, task, 0))


def test_a_task_sees_the_gpus_that_are_its_own():
    devices = {"worker-1": "2,3"}
    inherited = {"CUDA_VISIBLE_DEVICES": "1,2,3"}
    assert command_of(job(), "worker-1", inherited, devices)[0].environment["CUDA_VISIBLE_DEVICES"] == "2,3"
    assert command_of(job(), "worker-0", inherited, devices)[0].environment["CUDA_VISIBLE_DEVICES"] == "1,2,3"


def test_the_choice_of_a_manifest_stands():
    chosen = job_with(entrypoint="x.py", env=[{"name": "CUDA_VISIBLE_DEVICES", "value": "7"}])
    assert command_of(chosen, devices={"worker-1": "2"})[0].environment["CUDA_VISIBLE_DEVICES"] == "7"
