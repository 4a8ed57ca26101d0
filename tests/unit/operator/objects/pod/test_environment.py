# SPDX-License-Identifier: Apache-2.0
"""What a training container is told: the variables of contract.md, and no other."""

import json
import re
from pathlib import Path

from dtjob.api.job import Job
from dtjob.objects import topology
from dtjob.objects.pod.environment import environment
from dtjob.objects.pod.pod import pod
from dtjob_trainer.contract.settings import Checkpoint as TrainersCheckpoint
from dtjob_trainer.contract.settings import KeepBest as TrainersKeepBest
from tests.refusals import GOOD
from tests.unit.operator import builders

CHECKPOINT = {"storage": {"volume": {"emptyDir": {}}}}
CONTRACT = (Path(__file__).parents[5] / "docs" / "contribute" / "contract.md").read_text()


def told(job: Job, task: str = "worker-0", attempt: int = 0) -> dict[str, str]:
    found = environment(job, builders.task(task), attempt)
    return {one["name"]: one["value"] for one in found if "value" in one}


def listed() -> dict[str, str]:
    """The contract's variables, in order, with what it says of their values."""
    table = CONTRACT.split("## Environment")[1].split("\n\n")[1]
    rows = [row.split("|") for row in table.splitlines()]
    return {name: row[2] for row in rows for name in re.findall(r"`([A-Z_]+)`", row[1])}


def test_the_contract_lists_exactly_the_variables_that_containers_get() -> None:
    with_program = Job.model_validate({**GOOD["everything"], "metadata": {"name": "everything", "uid": "a"}})
    with_data = builders.job(replicaSpecs={"chief": {}, "data": {}})
    names = {
        one["name"]
        for job in (with_program, with_data, builders.job(program=False))
        for task in topology.all_tasks(job)
        for one in environment(job, task, 0)
    }
    of_the_user = {"A"}
    by_others = {"DTJOB_PARENT", "DTJOB_GPUS", "CUDA_VISIBLE_DEVICES"}  # `dtjob run`, and accelerators.py
    assert names - of_the_user == set(listed()) - by_others


def test_the_contract_lists_the_variables_of_an_image_without_a_program() -> None:
    told_it = [one["name"] for one in environment(builders.job(program=False), builders.task("worker-0"), 0)]
    only_it = [name for name, value in listed().items() if value.startswith(" without `program` only")]
    assert told_it == [*list(listed())[:5], *only_it]
    sentence = CONTRACT.split("Without `spec.program`")[1].split("\n\n")[0]
    assert "only the first five variables below" in sentence
    assert re.findall(r"`([A-Z_]+)`", sentence) == only_it


def test_the_environment_of_a_supervisor_has_its_attempt_its_rendezvous_and_its_options():
    job = builders.job(checkpoint=CHECKPOINT, strategyOptions={"communication": "Ring"})
    values = told(job, attempt=2)
    assert values["DTJOB_ATTEMPT"] == "2"
    assert values["DTJOB_RENDEZVOUS_ADDRESS"] == "digits-chief-0.digits:2224"
    assert values["DTJOB_CLUSTER_HASH"] == topology.cluster_hash(job)
    assert json.loads(values["DTJOB_STRATEGY_OPTIONS"]) == {"communication": "Ring"}
    assert values["DTJOB_GRACE_SECONDS"] == "60"
    assert "TF_CONFIG" not in values


def test_every_task_hashes_texts_alike_unless_the_program_sets_a_seed_of_its_own():
    assert told(builders.job())["PYTHONHASHSEED"] == "0"
    program = {"entrypoint": "train.py", "env": [{"name": "PYTHONHASHSEED", "value": "7"}]}
    found = environment(builders.job(program=program), builders.task("worker-0"), 0)
    assert [one["value"] for one in found if one["name"] == "PYTHONHASHSEED"] == ["7"]
    assert "PYTHONHASHSEED" not in told(builders.job(program=False))


def test_only_the_evaluator_has_the_variable_for_evaluation():
    evaluation = {"checkpoints": "Every", "best": {"metric": "loss", "mode": "Min", "keepModel": True}}
    job = builders.job(evaluator=True, checkpoint=CHECKPOINT, evaluation=evaluation)
    assert json.loads(told(job, "evaluator-0")["DTJOB_EVALUATION"]) == evaluation
    assert "DTJOB_EVALUATION" not in told(job, "chief-0")


def test_only_training_tasks_have_the_variable_for_tensorboard():
    board = {"everySteps": 50, "profile": {"firstStep": 100, "steps": 5}}
    job = builders.job(evaluator=True, checkpoint=CHECKPOINT, tensorBoard=board)
    for task in ("chief-0", "worker-1"):  # what a step gives is brought together from all of them
        assert json.loads(told(job, task)["DTJOB_TENSORBOARD"]) == board
    assert "DTJOB_TENSORBOARD" not in told(job, "evaluator-0")


def test_the_trainer_reads_all_checkpoint_settings_from_the_environment():
    settings = {
        "everyEpochs": 0,
        "everySteps": 100,
        "everySeconds": 0,
        "maxToKeep": 5,
        "keepEverySteps": 1000,
        "keepBest": {"metric": "loss", "mode": "Min", "count": 2},
        "writeMode": "Sync",
        "saveTimeoutSeconds": 90,
    }
    evaluation = {"best": {"metric": "loss", "mode": "Min"}}
    checkpoint = {**CHECKPOINT, **settings, "keepBest": 2}
    text = told(builders.job(evaluator=True, checkpoint=checkpoint, evaluation=evaluation))["DTJOB_CHECKPOINT"]
    assert json.loads(text) == {"directory": "/checkpoints", **settings}
    best = TrainersKeepBest("loss", is_highest=False, count=2)
    assert TrainersCheckpoint.from_json(text) == TrainersCheckpoint(
        "/checkpoints", 0, 100, 0, 5, "Sync", 90.0, 1000, best
    )
    keys = re.search(r"`DTJOB_CHECKPOINT` \| JSON: `\{(.*?)\}`", CONTRACT)
    assert list(json.loads(text)) == json.loads(f"[{keys[1]}]")


def test_the_trainer_has_the_same_defaults_for_checkpoints():
    text = told(builders.job(checkpoint=CHECKPOINT))["DTJOB_CHECKPOINT"]
    assert json.loads(text)["everySeconds"] == 300
    assert TrainersCheckpoint.from_json(text) == TrainersCheckpoint.from_json('{"directory": "/checkpoints"}')


def test_the_directory_is_the_uri_or_where_the_volume_is_mounted():
    for storage, directory in (
        ({"uri": "gs://bucket/digits"}, "gs://bucket/digits"),
        ({"volume": {"emptyDir": {}}, "mountPath": "/data"}, "/data"),
    ):
        job = builders.job(checkpoint={"storage": storage})
        assert json.loads(told(job)["DTJOB_CHECKPOINT"])["directory"] == directory


def test_other_images_get_tf_config_which_the_kubelet_expands():
    job = builders.job(program=False)
    order = [one["name"] for one in environment(job, builders.task("worker-1"), 0)]
    assert order.index("DTJOB_CLUSTER") < order.index("TF_CONFIG")
    expanded = told(job, "worker-1")["TF_CONFIG"].replace("$(DTJOB_CLUSTER)", topology.cluster_json(job))
    assert json.loads(expanded) == topology.tf_config(topology.cluster_spec(job), builders.task("worker-1"))
    first_five = {"DTJOB_NAME", "DTJOB_NAMESPACE", "DTJOB_UID", "DTJOB_ROLE", "DTJOB_INDEX"}
    assert set(order) == first_five | {"DTJOB_CLUSTER", "TF_CONFIG"}, "as contract.md says"


def test_a_tf_config_of_the_user_replaces_dtjobs():
    theirs = {"name": "TF_CONFIG", "value": '{"cluster": {}}'}
    container = {"name": "tensorflow", "env": [theirs]}
    job = builders.job(program=False, replicaSpecs={"chief": {"template": {"spec": {"containers": [container]}}}})
    (made,) = pod(job, builders.task("chief-0"), 0)["spec"]["containers"]
    assert [one for one in made["env"] if one["name"] == "TF_CONFIG"] == [theirs]
    assert "DTJOB_CLUSTER" in {one["name"] for one in made["env"]}


def test_a_dollar_in_a_variable_of_dtjob_is_escaped() -> None:
    job = builders.job(checkpoint={"storage": {"uri": "gs://bucket/$(HOME)"}})
    assert json.loads(told(job)["DTJOB_CHECKPOINT"])["directory"] == "gs://bucket/$$(HOME)"
