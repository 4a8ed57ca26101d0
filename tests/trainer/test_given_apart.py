# SPDX-License-Identifier: Apache-2.0
"""Tasks of MultiWorkerMirrored that are given other callbacks or other data than the chief: what is wrong is said by
all of them before the first step, and callbacks of one task alone do no harm."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.harness import Cluster

SAME = "give every task the same data; dtjob takes each task's share of it"


def started(directory: Path, *modes: str) -> Cluster:
    """A chief and a worker that run given_apart.py."""
    return Cluster(directory, "MultiWorkerMirrored", {"chief": 1, "worker": 1}, "given_apart.py", *modes)


def told(run: Cluster, task: str) -> dict[str, Any]:
    """What the program of `task` printed at its end."""
    line = next(line for line in run[task].output().splitlines() if line.startswith("told "))
    found: dict[str, Any] = json.loads(line.removeprefix("told "))
    return found


@pytest.mark.parametrize(
    ("mode", "one"),
    [("callbacks", "chief-0"), pytest.param("worker-callbacks", "worker-0", marks=pytest.mark.slow)],
)
def test_callbacks_for_each_batch_that_only_one_task_has_are_called_for_each(
    tmp_path: Path, mode: str, one: str
) -> None:
    """What they are told is a sum over all tasks, in which every task must take part. Structures that are the same
    everywhere are trained on before."""
    with started(tmp_path, "structures", mode) as run:
        run.run()
        assert "refused" not in run["chief-0"].output()
        found = {task: told(run, task) for task in run.tasks}
        assert found["chief-0"]["history"] == found["worker-0"]["history"]
        for task in run.tasks:
            assert found[task]["heard"] == ({"train": 24, "test": 24} if task == one else {"train": 0, "test": 0})


APART = {
    "validation": "FitError: validation_data: chief-0 has it, and task worker-0 has none; give it to every task",
    "peek": "DataError: x: in the first batch of a pass, task worker-0 reads other inputs than chief-0: some examples "
    "would be trained on twice and others never; make the same Dataset in every task: ",
    "generator": "DataError: x: in the first batch of a pass, task worker-0 reads other targets than chief-0: some",
    "interleave": "DataError: x: a part of the Dataset has deterministic=False, such as map() or interleave(), so",
    "lengths": f"DataError: x: task worker-0 has 160 examples, chief-0 256; {SAME}",
    "last-batch": f"DataError: x: task worker-0 has 250 examples, chief-0 256; {SAME}",
    "shards": f"DataError: x: task worker-0 has another first or last example than chief-0; {SAME}",
}
"""By what one task is given otherwise, what each of them says."""
LOSS = "StepError: the step of task worker-0 exchanges other values than that of chief-0; make the same"


def test_all_tasks_say_what_was_given_to_them_apart(tmp_path: Path) -> None:
    """The last mistake ends them, as each of these does in a program that does not go on."""
    with started(tmp_path, *APART, "loss") as run:
        run.start()
        for task in run.tasks:
            assert run[task].exit_code() == 1, run[task].output()
            for mode, message in APART.items():
                assert f"refused {mode}: {message}" in run[task].output()
            assert LOSS in run[task].output()
            assert not run[task].status.get("step")


def test_a_learning_rate_that_one_task_alone_changes_ends_all_of_them(tmp_path: Path) -> None:
    """Their weights would part, and nobody would hear of it."""
    message = "CallbackError: callbacks: the learning rate is 0.01 in task worker-0, and 0.005 in chief-0; give callb"
    with started(tmp_path, "rate") as run:
        run.start()
        for task in run.tasks:
            assert run[task].exit_code() == 1, run[task].output()
            assert message in run[task].output()
