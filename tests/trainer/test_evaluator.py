# SPDX-License-Identifier: Apache-2.0
"""The evaluator after a real run: which checkpoints it looks at, what it keeps and logs, and that it ends."""

import json
import shutil
from pathlib import Path

import pytest

from tests.trainer.support.harness import DIGITS, Cluster, by_hand

EPOCHS, STEPS_PER_EPOCH = 4, 16
KEEP_BEST = {"metric": "accuracy", "mode": "Max", "count": 2}
READ_EVENTS = """
import glob, json, sys, numpy as np, tensorflow as tf
found = []
for path in sorted(glob.glob(sys.argv[1] + "/*")):
    for record in tf.data.TFRecordDataset(path):
        event = tf.compat.v1.Event.FromString(record.numpy())
        for value in event.summary.value:
            assert value.metadata.plugin_data.plugin_name == "scalars"
            found.append([event.step, value.tag, float(tf.make_ndarray(value.tensor))])
loaded = tf.keras.models.load_model(sys.argv[2])
digits = np.load(sys.argv[3])
images = (digits["images"] / 16.0)[..., None].astype("float32")
accuracy = loaded.evaluate(images[-300:], digits["target"][-300:], verbose=0)[1]
print(json.dumps([found, accuracy]))
"""


def job(directory: Path, evaluation: dict[str, object] | None = None) -> Cluster:
    return Cluster(
        directory,
        "Default",
        {"chief": 1, "evaluator": 1},
        "train.py",
        f"--epochs={EPOCHS}",
        checkpoint={"everySteps": STEPS_PER_EPOCH, "maxToKeep": 9, "keepBest": KEEP_BEST},
        env={"DTJOB_EVALUATION": json.dumps(evaluation)} if evaluation is not None else None,
    )


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkpoints of a finished run, to which each evaluator comes late."""
    with job(tmp_path_factory.mktemp("trained")) as run:
        run.run("chief-0")
        return run.checkpoints


def late(directory: Path, trained: Path, evaluation: dict[str, object] | None) -> Cluster:
    """The same job with a copy of its checkpoints, whose evaluator is still to start."""
    run = job(directory, evaluation)
    shutil.copytree(trained, run.checkpoints)
    return run


def evaluated(run: Cluster) -> list[int]:
    return [line["evaluation"]["step"] for line in run["evaluator-0"].lines if "evaluation" in line]


def test_only_the_latest_is_evaluated_where_nothing_is_said(tmp_path: Path, trained: Path) -> None:
    with late(tmp_path, trained, None) as run:
        run.run("evaluator-0")
        assert evaluated(run) == [EPOCHS * STEPS_PER_EPOCH]
        assert not (run.checkpoints / "best.keras").exists()


def test_every_checkpoint_is_evaluated_and_the_best_model_kept(tmp_path: Path, trained: Path) -> None:
    evaluation = {"checkpoints": "Every", "best": {"metric": "accuracy", "mode": "Max"}}
    with late(tmp_path, trained, evaluation) as run:
        run.run("evaluator-0")
        steps = [STEPS_PER_EPOCH * epoch for epoch in range(1, EPOCHS + 1)]
        assert evaluated(run) == steps
        lines = [line["evaluation"] for line in run["evaluator-0"].lines if "evaluation" in line]
        accuracies = {line["step"]: line["metrics"]["accuracy"] for line in lines}
        best = json.loads((run.checkpoints / "best.json").read_text())
        assert best["value"] == max(accuracies.values()) == accuracies[best["step"]]
        assert lines[-1]["best"] == {"step": best["step"], "value": best["value"]}
        kept = json.loads((run.checkpoints / "kept.json").read_text())
        assert sorted(kept["best"].values()) == sorted(accuracies.values())[-KEEP_BEST["count"] :]
        assert kept["best"].items() <= {str(step): value for step, value in accuracies.items()}.items()
        assert kept["evaluating"] is None
        events, model = run.checkpoints / "events" / "evaluator", run.checkpoints / "best.keras"
        said = by_hand(READ_EVENTS, str(events), str(model), str(DIGITS), directory=tmp_path)
        found, accuracy = json.loads(said.splitlines()[-1])
        assert accuracy == pytest.approx(best["value"], abs=1e-6)
        logged = {step: value for step, tag, value in found if tag == "accuracy"}
        assert logged == pytest.approx(accuracies)

        # an evaluator that starts again knows what was best before, and tells of what was removed meanwhile
        model.unlink()
        for path in run.checkpoints.glob(f"ckpt-{steps[0]}.*"):
            path.unlink()
        run.run("evaluator-0")
        assert evaluated(run) == steps[1:]
        assert not model.exists()
        said = f"1 had been removed before this evaluator looked (of steps {steps[0]})"
        assert said in run["evaluator-0"].output()

        for step in (steps[1], steps[-1]):
            (damaged,) = run.checkpoints.glob(f"ckpt-{step}.data*")
            damaged.write_bytes(b"")
        run.start("evaluator-0")
        assert run["evaluator-0"].exit_code() == 1, "the last one must not be passed over"
        assert evaluated(run) == steps[2:-1], "a damaged one does not hide those after it"
        assert f"ckpt-{steps[1]} cannot be read, and is not evaluated: " in run["evaluator-0"].output()
        told = run["evaluator-0"].status["exception"]
        assert told["type"] == "EvaluatorError"
        assert f"ckpt-{steps[-1]} cannot be read, and is not evaluated, although it is the last one" in told["message"]


def test_a_metric_that_the_model_has_not_is_named(tmp_path: Path, trained: Path) -> None:
    with late(tmp_path, trained, {"best": {"metric": "recall", "mode": "Max"}}) as run:
        run.start("evaluator-0")
        assert run["evaluator-0"].exit_code() == 1
        assert "evaluation.best.metric 'recall' is none of the model's" in run["evaluator-0"].output()
