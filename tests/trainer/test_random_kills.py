# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments, again and again: a MultiWorkerMirrored run ends with the bits of the undisturbed one.

Slow: `make chaos`. DTJOB_CHAOS_KILLS says how often (20), DTJOB_CHAOS_SEED whom and when. The model has Dropout and
BatchNormalization.
"""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.trainer.support.local_runs import LocalRun, Statuses, assert_identical, manifest

KILLS = int(os.environ.get("DTJOB_CHAOS_KILLS", "20"))
SEED = int(os.environ.get("DTJOB_CHAOS_SEED", "0"))
TASKS = ("chief-0", "worker-0", "worker-1")
EPOCHS = 10 * KILLS
"""More than is trained between the kills, so that the last one comes before the end."""
LONGEST_WAIT = 3.0
LONGEST_RUN = 60.0 * KILLS


def step_of(now: Statuses) -> int:
    """The chief's last step, 0 where it does not train."""
    chief = now.get("chief-0", {})
    return chief.get("step") or 0 if chief.get("state") == "training" else 0


@pytest.mark.slow
@pytest.mark.timeout(120 * (KILLS + 1))
def test_kills_at_random_moments_change_no_bit(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    everlasting = {"maxRestartsWithoutProgress": 10 * KILLS, "backoff": {"initialSeconds": 0}}
    file = manifest(
        "digits.yaml",
        tmp_path / "job.yaml",
        EPOCHS,
        replicaSpecs={"chief": {}, "worker": {"replicas": 2}},
        checkpoint={"storage": {"volume": {"emptyDir": {}}}, "everySteps": 50},
        failurePolicy=everlasting,
        image=None,
    )
    with LocalRun(file, tmp_path / "undisturbed") as run:
        code, undisturbed = run.end(LONGEST_RUN)
        assert code == 0, run.told
    states, farthest = [], 0
    with LocalRun(file, tmp_path / "killed") as run:
        while len(states) < KILLS:
            victim, process = chance.choice(TASKS), chance.choice(("trainingPid", "pid"))
            if chance.random() < 0.7:  # else the last kill's restart may be killed as well
                # farther than a group comes that does not yet know of its loss
                run.wait_until(lambda now, f=farthest: step_of(now) > f + 10, "new steps")
            time.sleep(chance.uniform(0.0, LONGEST_WAIT))  # no condition to wait for: any moment must do
            status = run.wait_until(lambda now, v=victim, p=process: p in now.get(v, {}), f"{process} of {victim}")
            farthest = max(farthest, step_of(status))
            with contextlib.suppress(ProcessLookupError):  # it has just ended by itself: not a kill
                os.kill(status[victim][process], signal.SIGKILL)
                states.append(status[victim]["state"])
        code, killed = run.end(LONGEST_RUN)
        assert code == 0, run.told
        assert run.processes() == {}
    print(f"{KILLS} kills: {dict(Counter(states))}; restarts {killed['restarts']}")
    assert states.count("training") > KILLS // 4
    assert killed["steps"] == undisturbed["steps"]
    assert_identical(killed["model"], undisturbed["model"])
