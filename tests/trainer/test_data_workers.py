# SPDX-License-Identifier: Apache-2.0
"""replicaSpecs.data under `dtjob run`: two tasks share what two data workers make, which are killed meanwhile."""

import os
import signal
from pathlib import Path

import pytest

from tests.trainer.support.harness import PROGRAMS
from tests.trainer.support.local_runs import LocalRun, Statuses, written_job

pytestmark = [pytest.mark.timeout(900), pytest.mark.slow]
N, EPOCHS, STEPS = 203, 9, 26
AHEAD = 60
"""More examples than a data worker has of its own: what it makes at once, and what waits to be fetched."""


def noted(file: Path) -> dict[int, tuple[int, int]]:
    """Epoch to the numbers of examples that never came, and that came again, as noted last."""
    lines = [line.split() for line in file.read_text().splitlines()]
    return {int(epoch): (int(never), int(again)) for epoch, never, again in lines}


def test_epochs_in_which_data_workers_or_tasks_are_killed_have_the_documented_examples(tmp_path: Path) -> None:
    """First a data worker is killed, then the chief's training process with the dispatcher, and then that of the other
    task. Between two kills an epoch passes without one."""
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

    def restarts(now: Statuses, task: str) -> int:
        return int(now.get(task, {}).get("restartsInPlace", 0))

    with LocalRun(file, tmp_path / "runs") as run:
        run.wait_for_step(1)
        first = run.wait_for_step(STEPS + 3)
        os.kill(first["data-1"]["pid"], signal.SIGKILL)
        second = run.wait_until(replaced, "another data-1")
        assert second["chief-0"]["trainingPid"] == first["chief-0"]["trainingPid"]
        step = second["chief-0"]["step"]
        for task in ("chief-0", "worker-0"):
            now = run.wait_for_step(step + 2 * STEPS)
            os.kill(now[task]["trainingPid"], signal.SIGKILL)
            run.wait_until(lambda now, task=task: restarts(now, task) > restarts(first, task), f"the restart of {task}")
            step = now["chief-0"]["step"]
        code, result = run.end()
        logs = "".join(log.read_text() for log in Path(result["runDirectory"]).rglob("*.log"))
        run.wait_until_nothing_is_left()
    assert code == 0, run.told
    assert result["phase"] == "Succeeded"
    assert result["restarts"]["byCause"] == {"Signal": 2}, "no data worker is counted"
    assert result["resume"] == "approximate"
    assert "x: the job's data workers make the examples" in logs
    assert "makes examples for the chief task at 127.0.0.1:" in logs
    found = noted(notes)
    assert set(found) == set(range(EPOCHS))
    assert found[0] == found[EPOCHS - 1] == (0, 0), found
    odd = [epoch for epoch, times in found.items() if times != (0, 0)]
    assert len(odd) <= 3, found
    of_data = [never for never, again in found.values() if again == 0]
    assert max(of_data) <= AHEAD, "no example comes twice when a data worker is killed, and few are lost"
