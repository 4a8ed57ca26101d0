# SPDX-License-Identifier: Apache-2.0
"""Goodput of real runs that are killed at known steps, against what the test itself writes down."""

import itertools
import json
import os
import re
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.local_runs import LocalRun, Statuses, manifest

pytestmark = pytest.mark.timeout(300)

EPOCHS, STEPS_OF_EPOCH, EVERY = 4, 16, 20
HELD_AT, RESTORED = 32, 20
"""The program waits at the third epoch's begin; the newest checkpoint is that of step 20."""
SLOW_WRITE = 0.4
HUNDREDTHS = 0.1
"""Seconds that the rounding of all parts to hundredths can come to, many times over."""


def held(again: int) -> Any:
    """The chief waits at the known step, in its so many-th training process in its container."""

    def reached(now: Statuses) -> bool:
        chief = now.get("chief-0", {})
        return (chief.get("step"), chief.get("incarnation"), chief.get("state")) == (HELD_AT, again, "training")

    return reached


def written(work_directory: Path) -> dict[str, Any]:
    """The goodput in the job's status as dtjob has kept it last."""
    record = json.loads((work_directory / "digits" / "run-1" / "run.json").read_text())
    return (record["status"] or {}).get("goodput") or {}


def spans(log: Path) -> dict[str, tuple[list[int], float]]:
    """By process of the chief: the steps that it did, and the seconds from the end of the first to that of the last."""
    lines = [line.split() for line in log.read_text().splitlines()]
    found = {}
    for process, rows in itertools.groupby(lines, key=lambda row: row[0]):
        steps, times = zip(*((int(step), float(moment)) for _, step, moment in rows), strict=True)
        found[process] = (list(steps), times[-1] - times[0])
    return found


def test_goodput_counts_the_seconds_and_steps_that_two_kills_cost(tmp_path: Path) -> None:
    """A worker's process is killed, over which the chief's starts again in place; then the chief's supervisor."""
    gate, log = tmp_path / "gate", tmp_path / "steps"
    arguments = [f"--epochs={EPOCHS}", "--hold=2", f"--gate={gate}", f"--step-log={log}", f"--slow-write={SLOW_WRITE}"]
    file = manifest(
        "digits.yaml",
        tmp_path / "job.yaml",
        EPOCHS,
        program={"entrypoint": "tests/trainer/programs/train.py", "args": arguments},
        checkpoint={"storage": {"volume": {"emptyDir": {}}}, "everySteps": EVERY, "writeMode": "Sync"},
        replicaSpecs={"chief": {}, "worker": {"replicas": 1}},
        image=None,
    )
    with LocalRun(file, tmp_path) as run:
        first = run.wait_until(held(0), "the held step")
        os.kill(first["worker-0"]["trainingPid"], signal.SIGKILL)
        second = run.wait_until(held(1), "the held step after a restart in place")
        # The chief's last word has to be read before its supervisor ends with it: it is, once it is in the status.
        redone = {"kept": HELD_AT, "redone": HELD_AT - RESTORED}
        run.wait_until(lambda _: written(tmp_path).get("steps") == redone, "the restart in the status")
        os.kill(second["chief-0"]["pid"], signal.SIGKILL)
        run.wait_until(lambda now: held(0)(now) and now["chief-0"]["attempt"] == 1, "the held step after a new pod")
        gate.touch()
        code, result = run.end()
        assert code == 0, run.told
    print(result["goodput"])
    check(result["goodput"], spans(log), result["seconds"])
    assert re.search(rf"goodput +{result['goodput']['percentage']}% of the time since all tasks ran", run.told)


def check(goodput: Mapping[str, Any], processes: Mapping[str, tuple[list[int], float]], took: float) -> None:
    (steps_1, span_1), (steps_2, span_2), (steps_3, span_3) = processes.values()
    assert (steps_1, steps_2) == ([*range(1, HELD_AT + 1)], [*range(RESTORED + 1, HELD_AT + 1)])
    assert steps_3 == [*range(RESTORED + 1, EPOCHS * STEPS_OF_EPOCH + 1)]
    lost = HELD_AT - RESTORED
    assert goodput["steps"] == {"kept": EPOCHS * STEPS_OF_EPOCH, "redone": 2 * lost}

    seconds = {name: float(value) for name, value in goodput["seconds"].items() if name != "unknown"}
    assert seconds.keys() >= {"kept", "redone", "saving", "starting", "restarting"}
    known = sum(seconds.values())
    assert goodput["percentage"] == int(100 * seconds["kept"] / known + 1e-6)
    assert known <= took + HUNDREDTHS
    # Saves at 20, and of the last process at 40, 60 and the end; each holds training up.
    assert seconds["saving"] >= 4 * SLOW_WRITE - HUNDREDTHS
    # What each process trained is longer than its steps but the first took; the saves among them are not in `kept`.
    trained = seconds["kept"] + seconds["redone"] + seconds["saving"]
    assert trained >= span_1 + span_2 + span_3 - HUNDREDTHS
    # The second process' steps were all taken back, and of the first's this share.
    assert seconds["redone"] >= span_2 + (span_1 - seconds["saving"]) * lost / HELD_AT - HUNDREDTHS
    assert seconds["redone"] <= trained - span_3 + HUNDREDTHS
