# SPDX-License-Identifier: Apache-2.0
"""replicaSpecs.data under `dtjob run`: two tasks share what two data workers make, which are killed meanwhile."""

import os
import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import PROGRAMS
from tests.trainer.support.local_runs import LocalRun, Statuses, written_job

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]
N, EPOCHS, STEPS = 203, 8, 26
EXACT = (sum(range(N)) / N, sum(n * n for n in range(N)) / N)


def noted(file: Path) -> dict[int, tuple[float, float]]:
    """Epoch to the means that it had last."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return {int(epoch): (float(mean), float(square)) for epoch, mean, square in lines}


def test_a_killed_data_worker_does_not_interrupt_training_and_each_other_epoch_has_each_example_once(tmp_path: Path):
    """The dispatcher is in the training process of the chief: its end is a restart of training, as every kill of that
    process. Data workers serve the new one."""
    notes = tmp_path / "notes"
    spec = {
        "strategy": "MultiWorkerMirrored",
        "program": {
            "entrypoint": str(PROGRAMS / "data_workers.py"),
            "args": [f"--epochs={EPOCHS}", f"--notes={notes}"],
        },
        "replicaSpecs": {"chief": {}, "worker": {"replicas": 1}, "data": {"replicas": 2}},
        "checkpoint": {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 5},
    }
    file = written_job(tmp_path / "job.yaml", "served", **spec)

    def replaced(now: Statuses) -> bool:
        return now.get("data-1", {}).get("attempt") == 1 and now["data-1"]["state"] == "serving"

    def restarted(now: Statuses) -> bool:
        return int(now.get("chief-0", {}).get("restartsInPlace", 0)) > 0

    with LocalRun(file, tmp_path / "runs") as run:
        run.wait_for_step(1)
        first = run.wait_for_step(STEPS + 3)
        os.kill(first["data-1"]["pid"], signal.SIGKILL)
        second = run.wait_until(replaced, "another data-1")
        assert not restarted(second), "training went on"
        assert second["chief-0"]["trainingPid"] == first["chief-0"]["trainingPid"]
        third = run.wait_for_step(second["chief-0"]["step"] + STEPS)
        os.kill(third["chief-0"]["trainingPid"], signal.SIGKILL)
        run.wait_until(restarted, "the restart of the chief's process")
        for epoch in range(1, EPOCHS):
            run.wait_for_step(epoch * STEPS)
        code, result = run.end()
        logs = "".join(log.read_text() for log in Path(result["runDirectory"]).rglob("*.log"))
        run.wait_until_nothing_is_left()
    assert code == 0, run.told
    assert result["phase"] == "Succeeded"
    assert result["restarts"]["byCause"] == {"Signal": 1}, "the chief's alone"
    assert "x: the job's data workers make the examples" in logs
    means = noted(notes)
    assert set(means) == set(range(EPOCHS))
    exact = [epoch for epoch, found in means.items() if found == pytest.approx(EXACT, rel=1e-4)]
    assert {0, EPOCHS - 1} <= set(exact)
    assert len(exact) >= EPOCHS - 3, f"the epochs of the two kills alone may differ: {means}"
