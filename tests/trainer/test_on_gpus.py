# SPDX-License-Identifier: Apache-2.0
"""Training on a real GPU, which tasks share: strategies, kills, and who holds the GPU."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests import gpus
from tests.trainer.support.harness import PROGRAMS, Cluster
from tests.trainer.support.local_runs import LocalRun, assert_identical, manifest
from tests.trainer.support.strategy_table import CLUSTERS

pytestmark = [
    pytest.mark.skipif(gpus.first() is None, reason="no GPU here, or no TensorFlow for one"),
    pytest.mark.timeout(400),
]

PROGRAM = "on_gpus.py"
STEPS = 60
"""Of its three epochs."""
STRATEGIES = {name: counts for name, (counts, _) in CLUSTERS.items() if name != "TPU"}
POLICIES = ("float32", "mixed_float16", "mixed_bfloat16")
CHECKPOINT = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 20}
GROUP = {"chief": {}, "worker": {"replicas": 1}}


def job(directory: Path, strategy: str, *args: str, **spec: object) -> Path:
    """The manifest of a job of this program that `dtjob run` takes."""
    directory.mkdir()
    program = {"entrypoint": str(PROGRAMS / PROGRAM), "args": list(args)}
    blocks = {"strategy": strategy, "checkpoint": CHECKPOINT, "image": None, "program": program, **spec}
    return manifest("digits.yaml", directory / "job.yaml", 1, **blocks)


@pytest.fixture(autouse=True)
def _on_one_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """With several, tasks would have several replicas each, and workers of ParameterServer must not."""
    monkeypatch.setenv(gpus.VISIBLE, gpus.first() or "")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_learns_on_the_gpu(tmp_path: Path, strategy: str, policy: str) -> None:
    checked, asynchronous = tmp_path / "checked", strategy == "ParameterServer"
    with Cluster(tmp_path, strategy, STRATEGIES[strategy], PROGRAM, f"--policy={policy}", f"--until={checked}") as run:
        run.start()
        run["chief-0"].wait_for_step(STEPS)
        trains = {task for task in run.tasks if not asynchronous or task.startswith("worker")}
        assert {task for task in run.tasks if gpus.hold(run[task].process.pid)} == trains
        checked.touch()
        run.expect_success(*(["chief-0"] if asynchronous else run.tasks))
        said = run["chief-0"].output()
    assert re.search(rf"weights are on {'ps CPU' if asynchronous else '[a-z]+ GPU'}:0", said), said
    first, last = (float(each) for each in re.search(r"loss fell from (\S+) to (\S+)", said).groups())  # type: ignore[union-attr]
    assert last < first < 3


@pytest.mark.parametrize("strategy", ["Mirrored", "MultiWorkerMirrored"])
def test_a_killed_task_comes_back_with_the_same_bits(tmp_path: Path, strategy: str) -> None:
    args, replicas = ("--deterministic", "--epochs=40", "--policy=mixed_float16"), GROUP
    if strategy == "Mirrored":
        replicas = {"chief": {}}
    with LocalRun(job(tmp_path / "one", strategy, *args, replicaSpecs=replicas), tmp_path / "undisturbed") as run:
        code, undisturbed = run.end()
        assert code == 0, run.told
    with LocalRun(job(tmp_path / "two", strategy, *args, replicaSpecs=replicas), tmp_path / "killed") as run:
        for step in (100, 300):
            statuses = run.wait_for_step(step)
            os.kill(statuses[f"{list(replicas)[-1]}-0"]["trainingPid"], signal.SIGKILL)
        code, killed = run.end()
        assert code == 0, run.told
    assert killed["restarts"]["byCause"]
    assert killed["phase"] == "Succeeded"
    print("seconds to train again", killed["recoverySeconds"])
    assert_identical(undisturbed["model"], killed["model"])


def test_only_training_processes_hold_the_gpu(tmp_path: Path) -> None:
    """A template from which the next process is forked must not: CUDA does not outlive a fork."""
    file = job(tmp_path / "job", "MultiWorkerMirrored", "--epochs=500", replicaSpecs=GROUP)
    with LocalRun(file, tmp_path / "work") as run:
        statuses = run.wait_for_step(40)
        trains = {each["trainingPid"] for each in statuses.values()}
        assert gpus.holders(run.process.pid) == trains
        os.kill(statuses["worker-0"]["trainingPid"], signal.SIGKILL)
        again = run.wait_until(
            lambda now: (
                {"chief-0", "worker-0"} <= now.keys()
                and all(each.get("state") == "training" for each in now.values())
                and not trains & {each["trainingPid"] for each in now.values()}
            ),
            "training again",
        )
        assert gpus.holders(run.process.pid) == {each["trainingPid"] for each in again.values()}


def test_a_killed_process_leaves_its_memory_to_the_next(tmp_path: Path) -> None:
    """Each takes more than half of the GPU."""
    file = job(tmp_path / "job", "Mirrored", "--fill=0.6", "--epochs=100", replicaSpecs={"chief": {}})
    with LocalRun(file, tmp_path / "work") as run:
        for step in (50, 200, 400):
            statuses = run.wait_for_step(step)
            os.kill(statuses["chief-0"]["trainingPid"], signal.SIGKILL)
        code, result = run.end()
        assert code == 0, run.told
    print("seconds to train again", result["recoverySeconds"])
    assert result["restarts"]["total"] == 3


def test_a_full_gpu_memory_is_reported(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, PROGRAM, "--fill=1.5") as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert run["chief-0"].status["exception"]["type"] == "ResourceExhaustedError"


def test_nccl_between_two_tasks_on_one_gpu_is_reported(tmp_path: Path) -> None:
    counts, options = {"chief": 1, "worker": 1}, {"communication": "NCCL"}
    with Cluster(tmp_path, "MultiWorkerMirrored", counts, PROGRAM, options=options) as run:
        run.start()
        assert 1 in [run[task].exit_code() for task in run.tasks]
        assert any("communication must be Ring" in run[task].status.get("message", "") for task in run.tasks)


def test_a_model_compiled_by_xla_trains_on_the_gpu(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, PROGRAM, "--jit") as run:
        run.run()
        said = run["chief-0"].output()
    assert re.search(r"weights are on \w+ GPU:0", said), said
    assert "compiled by XLA: True" in said
