# SPDX-License-Identifier: Apache-2.0
"""`dtjob explain`: what a job would be in a cluster."""

import json
import tracemalloc

import pytest
import yaml

from dtjob.cli.explain.explanation import as_json, as_text
from tests.unit.operator.builders import job
from tests.unit.test_examples import EXAMPLES


def test_explain_shows_the_host_and_the_tf_config_of_each_task(dtjob, good):
    code, out, _ = dtjob("explain", good)
    assert code == 0
    assert "digits-worker-1.digits:2222" in out
    assert '"task": {"type": "worker", "index": 1}' in out
    assert "TF_CONFIG  none: it stands alone" in out  # the evaluator
    tasks = {task["task"]: task for task in json.loads(dtjob("explain", good, "-o", "json")[1])["tasks"]}
    assert list(tasks) == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert tasks["worker-1"]["tfConfig"]["task"] == {"type": "worker", "index": 1}
    assert tasks["evaluator-0"]["tfConfig"] is None


def test_explain_yaml_is_what_would_be_created(dtjob, good):
    _, out, _ = dtjob("explain", good, "-o", "yaml")
    objects = list(yaml.safe_load_all(out))
    assert [item["kind"] for item in objects] == ["Service", "ConfigMap", "NetworkPolicy"] + ["Pod"] * 4
    chief = objects[3]
    assert (chief["spec"]["hostname"], chief["spec"]["subdomain"]) == ("digits-chief-0", "digits")


def test_explain_says_what_is_written_for_tensorboard(dtjob, good):
    assert "TensorBoard" not in dtjob("explain", good)[1]
    good.write_text(f"{good.read_text()}  tensorBoard: {{profile: {{firstStep: 200}}}}\n")
    _, out, _ = dtjob("explain", good)
    assert "/checkpoints/events/train, for TensorBoard, every 100 steps" in out
    assert "steps 200 to 204 of chief-0" in out


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("", ["at the end of an epoch, 30 s or more after the last save", "300 s after the last save"]),
        (", everyEpochs: 1", ["at the end of each epoch", "300 s after the last save"]),
        (", everyEpochs: 5, everySeconds: 0", ["every 5 epochs"]),
        (", everyEpochs: 0, everySteps: 9", ["every 9 steps", "300 s after the last save"]),
        (", everyEpochs: 0, everySeconds: 0", ["at the end of training only"]),
    ],
)
def test_explain_says_when_checkpoints_are_saved(dtjob, good, fields: str, said: list[str]) -> None:
    good.write_text(good.read_text().replace(", everySteps: 100", fields))
    lines = [line.strip() for line in dtjob("explain", good)[1].splitlines()]
    assert [line.removeprefix("saved").strip() for line in lines if line.startswith("saved ")] == said


def test_a_job_without_program_saves_itself(dtjob) -> None:
    out = dtjob("explain", EXAMPLES / "plain.yaml")[1]
    assert "  saved      by the program itself\n" in out
    assert "  kept " not in out


def test_explain_says_which_checkpoints_are_kept(dtjob, good):
    keeps = "keepEverySteps: 1000, keepBest: 2"
    assert dtjob("explain", good)[1].count("  kept ") == 1
    text = good.read_text().replace("everySteps: 100", f"everySteps: 100, maxToKeep: 5, {keeps}")
    good.write_text(f"{text}  evaluation: {{best: {{metric: loss, mode: Min}}}}\n")
    _, out, _ = dtjob("explain", good)
    assert "  kept       the newest 5\n" in out
    assert "  kept       the first at or after each multiple of 1000 steps\n" in out
    assert "  kept       the 2 with the lowest loss of those that are evaluated\n" in out
    assert "  kept       the model with the lowest loss, as best.keras\n" in out


def test_explain_warns_of_checkpoints_that_end_with_the_chiefs_pod(dtjob, good):
    said = "warning    checkpoint.storage.volume is an emptyDir volume, and ends with the chief's pod"
    assert said in dtjob("explain", good)[1]
    good.write_text(good.read_text().replace("emptyDir: {}", "persistentVolumeClaim: {claimName: digits}"))
    assert "warning" not in dtjob("explain", good)[1]


def test_explain_shows_the_claim_that_the_operator_creates(dtjob, good):
    claim = "volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 10Gi}}}}"
    good.write_text(good.read_text().replace("volume: {emptyDir: {}}", f"{claim}, mountOn: All, retention: Delete"))
    _, out, _ = dtjob("explain", good)
    assert "  PersistentVolumeClaim digits-checkpoints\n" in out
    assert "  claim      digits-checkpoints, 10Gi, ReadWriteOnce, mounted on All\n" in out
    assert "  claim      is deleted when the job is deleted\n" in out
    assert "  warning    checkpoint.storage.volumeClaimTemplate.spec.accessModes lacks ReadWriteMany" in out
    assert "lacks ReadWriteMany" in "".join(dtjob("validate", good)[1:])


def test_explain_shows_a_job_with_the_operators_defaults(dtjob, without_image, good):
    assert "Image: left out" in dtjob("explain", without_image)[1]
    assert "Image: dtjob-trainer:dev" in dtjob("explain", good, "--default-image=other:1")[1]
    options = ("--default-image=other:1", "--default-pod-label=team=vision")
    assert "Image: other:1" in dtjob("explain", without_image, *options)[1]
    _, out, _ = dtjob("explain", without_image, "-o", "yaml", *options)
    pods = [one for one in yaml.safe_load_all(out) if one["kind"] == "Pod"]
    assert {one["spec"]["containers"][0]["image"] for one in pods} == {"other:1"}
    assert {one["metadata"]["labels"]["team"] for one in pods} == {"vision"}
    chief = json.loads(dtjob("explain", without_image, "-o", "json")[1])["objects"][3]
    assert "image" not in chief["spec"]["containers"][0]


OF_A_TEMPLATE = "{template: {spec: {containers: [{name: tensorflow, image: own:1}]}}}"


def test_explain_says_the_images_that_the_pods_run(dtjob, without_image):
    """A template's image is that of its role."""
    without_image.write_text(without_image.read_text().replace("evaluator: {}", f"evaluator: {OF_A_TEMPLATE}"))
    said = dtjob("explain", without_image, "--default-image=other:1")[1]
    assert "Image: other:1 (chief-0, worker-0, worker-1), own:1 (evaluator-0)" in said
    found = json.loads(dtjob("explain", without_image, "-o", "json")[1])
    assert [task["image"] for task in found["tasks"]] == [None, None, None, "own:1"]


@pytest.mark.parametrize("render", [as_text, as_json])
def test_the_tasks_of_a_large_job_share_their_addresses(render):
    """Each TF_CONFIG has the addresses of all tasks: what is told grows with their square, and is never held."""
    large = job(workers=500)
    tracemalloc.start()
    told = sum(len(piece) for piece in render(large))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert told > 500 * 500 * len("digits-worker-0.digits:2222")
    assert most < told


def test_the_explanation_of_a_single_task_says_1_task():
    alone = job(strategy="OneDevice", replicaSpecs={"chief": {}})
    assert next(iter(as_text(alone))) == "digits: OneDevice, 1 task; chief-0 decides success\n"
