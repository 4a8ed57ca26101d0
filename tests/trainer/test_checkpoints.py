# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: another number of workers, directories that are URIs, models that load in a scope and without."""

import re
import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, by_hand, saved_arrays

STEPS_PER_EPOCH = 16
LOAD = """
import sys, numpy as np, keras, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
images = np.random.default_rng(0).normal(size=(4, 8, 8, 1)).astype("float32")
plain = keras.models.load_model(sys.argv[1])
answers = plain.predict(images, verbose=0)
strategy = tf.distribute.MirroredStrategy(["cpu:0", "cpu:1"])
with strategy.scope():
    mirrored = keras.models.load_model(sys.argv[1])
assert type(mirrored.weights[0].value).__name__ == "MirroredVariable", type(mirrored.weights[0].value)
# Each replica has half of them, which some processors compute by other kernels.
np.testing.assert_allclose(mirrored.predict(images, verbose=0), answers, rtol=1e-5)
for model in (plain, mirrored):  # compiled as it was trained
    with strategy.scope() if model is mirrored else tf.device(None):
        model.train_on_batch(images, np.array([1, 2, 3, 4]))
print("all well")
"""


def test_other_numbers_of_workers_go_on_where_the_last_ones_stopped(tmp_path: Path) -> None:
    """3 workers, killed in an epoch; 2, which end that epoch; then 3. What an epoch's metrics counted is not lost, and
    a model without Dropout ends as one device's, which nobody disturbed."""
    checkpoint = {"everySteps": 20, "directory": str(tmp_path / "checkpoints")}

    def trained_by(name: str, workers: int, epochs: int, *more: str, uid: str = "elastic") -> Cluster:
        arguments = ("train.py", "--plain", "--examples=961", f"--epochs={epochs}", *more)
        if not workers:
            return Cluster(tmp_path / name, "Default", {"chief": 1}, *arguments)
        counts = {"worker": workers}
        return Cluster(tmp_path / name, "MultiWorkerMirrored", counts, *arguments, checkpoint=checkpoint, uid=uid)

    with trained_by("three", 3, 2, "--slow-write=3") as run:
        run.start()
        run["worker-0"].wait_until(lambda status: status.get("writing") == 2 * STEPS_PER_EPOCH, "its last save")
    for name, uid, workers, before, epochs in (
        ("two", "elastic", 2, 20, 2),
        ("again", "another", 3, 2 * STEPS_PER_EPOCH, 4),
    ):
        with trained_by(name, workers, epochs, uid=uid) as run:
            run.run()
            status = run["worker-0"].status
            assert status["restoredStep"] == before
            assert status["step"] == epochs * STEPS_PER_EPOCH
            assert status["resume"] == "approximate"
        with trained_by(f"one-{epochs}", 0, epochs) as run:
            run.run()
            assert run["chief-0"].status["restoredStep"] == 0, "it began from nothing, and says so"
            assert status["metrics"] == pytest.approx(run["chief-0"].status["metrics"], rel=1e-3)


def test_a_restore_needs_no_more_memory_than_training(tmp_path: Path) -> None:
    peaks = []
    # memory that is freed goes back at once: what the allocator keeps depends on how threads take turns, and is more
    env = {"MALLOC_MMAP_THRESHOLD_": "1000000"}
    for epochs in (3, 6):
        checkpoint = {"directory": str(tmp_path / "checkpoints"), "writeMode": "Sync"}
        arguments = ("restored_memory.py", f"--epochs={epochs}")
        with Cluster(
            tmp_path / str(epochs), "Default", {"chief": 1}, *arguments, checkpoint=checkpoint, env=env
        ) as run:
            run.run()
            assert run["chief-0"].status.get("restoredStep") == (0 if epochs == 3 else 3)
            (found,) = re.findall(r"peak (\d+)", run["chief-0"].output())
            peaks.append(int(found))
    fresh, restored = peaks
    assert restored < fresh + 0.3 * 134, peaks


@pytest.mark.slow
def test_a_directory_that_is_a_uri_takes_all_of_it(tmp_path: Path) -> None:
    """gs:// goes the same way through tf.io.gfile; file:// is the scheme that is here without a network."""
    (tmp_path / "bucket").mkdir()
    gate, directory = tmp_path / "gate", tmp_path / "bucket" / "digits"
    arrays = []
    for name in ("disturbed", "undisturbed"):
        folder = directory if name == "disturbed" else tmp_path / "path"
        with Cluster(
            tmp_path / name,
            "Default",
            {"chief": 1, "evaluator": 1},
            "train.py",
            "--hold=3",
            f"--gate={gate}",
            checkpoint={"everySteps": 10, "directory": f"file://{folder}" if name == "disturbed" else str(folder)},
            env={"DTJOB_EVALUATION": '{"best": {"metric": "accuracy", "mode": "Max"}}'},
        ) as run:
            run.start()
            if name == "disturbed":
                run["chief-0"].wait_for_checkpoint(40)
                run["chief-0"].wait_for_step(3 * STEPS_PER_EPOCH)
                run["chief-0"].kill()
                assert run["chief-0"].exit_code() == -signal.SIGKILL
                torn = [folder / "ckpt-99.data-00000-of-00001", folder / ".saving-model.keras"]
                for path in torn:
                    path.write_bytes(b"torn")
                gate.touch()
                run.start("chief-0")
            run.expect_success()
            if name == "disturbed":
                assert run["chief-0"].status["restoredStep"] == 40
                assert run["chief-0"].status["model"] == f"file://{folder}/model.keras"
                assert not any(path.exists() for path in torn)
            names = {path.name for path in folder.iterdir()}
            assert {"DONE", "checkpoint", "model.keras", "best.keras", "best.json", "events"} <= names
            assert not [name for name in names if name.endswith((".tmp", "_temp")) or "saving" in name]
            arrays.append(saved_arrays(folder, 6 * STEPS_PER_EPOCH))
    assert arrays[0] == arrays[1]


def test_a_job_on_the_checkpoints_of_one_that_has_ended_says_that_nothing_is_left(tmp_path: Path) -> None:
    directory = tmp_path / "kept"
    for uid in ("first", "second"):
        kept = {"everySteps": 10, "directory": str(directory)}
        arguments = ("train.py", "--plain", "--examples=128", "--epochs=2")
        with Cluster(tmp_path / uid, "Default", {"chief": 1}, *arguments, checkpoint=kept, uid=uid) as run:
            run.run()
            said, status = run["chief-0"].output(), run["chief-0"].status
        words = f"nothing is left to train: the checkpoint of step {status['step']} in {directory} has all epochs=2"
        assert (words in said) is (uid == "second")
    assert status["restoredStep"] == status["step"]


def test_a_run_that_is_marked_done_at_a_uri_ends_at_once(tmp_path: Path) -> None:
    """The supervisor, which has no TensorFlow, cannot look there. A worker that is not there is not waited for."""
    kept = {"everySteps": 10, "directory": f"file://{tmp_path}/kept"}
    arguments = ("train.py", "--plain", "--examples=128", "--epochs=2")
    with Cluster(tmp_path / "first", "Default", {"chief": 1}, *arguments, checkpoint=kept) as run:
        run.run()
        step = run["chief-0"].status["step"]
    with Cluster(
        tmp_path / "again", "MultiWorkerMirrored", {"chief": 1, "worker": 1}, *arguments, checkpoint=kept
    ) as run:
        run.start("chief-0")
        assert run["chief-0"].exit_code() == 0
        assert "is marked DONE by this job: nothing is left to train" in run["chief-0"].output()
        assert (run["chief-0"].status["state"], run["chief-0"].status["step"]) == ("finished", step)
        assert "training" not in [line.get("state") for line in run["chief-0"].lines]


def test_a_bucket_that_tensorflow_has_no_file_system_for_is_named_with_what_to_do(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, "train.py", checkpoint={"directory": "s3://bucket/digits"}) as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "has no file system for s3://; import a package that brings one" in run["chief-0"].output()


@pytest.mark.parametrize(
    ("strategy", "counts", "options"),
    [
        pytest.param("Mirrored", {"chief": 1}, {"logicalCPUs": 2}, marks=pytest.mark.slow),
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}, {}),
    ],
)
def test_the_model_loads_in_a_scope_and_without(
    tmp_path: Path, strategy: str, counts: dict[str, int], options: dict[str, int]
) -> None:
    with Cluster(
        tmp_path, strategy, counts, "train.py", "--epochs=1", checkpoint={"everySteps": 100}, options=options
    ) as run:
        run.run()
        model = run["chief-0"].status["model"]
    assert by_hand(LOAD, model, directory=tmp_path).endswith("all well\n")
