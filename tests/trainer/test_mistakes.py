# SPDX-License-Identifier: Apache-2.0
"""Mistakes that users make, with `dtjob run`: a program that fails twice in the same way is not tried again, and one
line says where and what is wrong. In a cluster the same words stand in the job's status (tests/cluster)."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.process.failure import OWN_STEPS
from tests.trainer.support.harness import Cluster
from tests.trainer.support.local_runs import LocalRun, manifest

pytestmark = pytest.mark.timeout(300)

PROGRAM = "tests/trainer/programs/mistakes.py"
RESTARTS = 3

BEFORE_THE_FIRST_STEP = [
    ("import_error", ":26: ModuleNotFoundError: No module named 'no_such_module' (chief-0, exit code 1)"),
    pytest.param(
        "missing_file",
        "FileNotFoundError: [Errno 2] No such file or directory: '/data/no-such-file.npz' (chief-0, ",
        marks=pytest.mark.slow,
    ),
    pytest.param("exit_3", "exit code 3 (chief-0)", marks=pytest.mark.slow),
    pytest.param(
        "wrong_shapes",
        "expected axis -1 of input shape to have value 5, but received input with shape (None, 8) ",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "out_of_memory",
        "MemoryError: Unable to allocate 8.00 PiB for an array with shape (1125899906842624,)",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        "wrong_targets",
        "input shapes: [?,7], [?,3]. (x (None, 8), y (None, 7), the model takes (None, 8), and gives (None, 3)) (chief",
        marks=pytest.mark.slow,
    ),
    pytest.param("exit_with_words", "SystemExit: no data for this day (chief-0, exit code 1)", marks=pytest.mark.slow),
]


def run(tmp_path: Path, mistake: str, **spec: Any) -> tuple[dict[str, Any], str]:
    """The summary of a job that fails over this mistake, and what was told meanwhile."""
    file = manifest(
        "digits-default.yaml",
        tmp_path / "job.yaml",
        1,
        **{"checkpoint": None, **spec},
        program={"entrypoint": PROGRAM, "args": [mistake]},
        failurePolicy={"maxRestartsWithoutProgress": RESTARTS, "backoff": {"initialSeconds": 0}},
    )
    with LocalRun(file, tmp_path / "runs") as running:
        code, result = running.end()
        assert (code, result["phase"]) == (1, "Failed"), running.told
        assert running.processes() == {}
    return result, running.told


@pytest.mark.parametrize(("mistake", "words"), BEFORE_THE_FIRST_STEP)
def test_a_mistake_before_the_first_step_is_not_tried_again(tmp_path: Path, mistake: str, words: str) -> None:
    result, told = run(tmp_path, mistake)
    assert result["reason"] == "ProgramFailed", told
    assert result["restarts"]["total"] == 1
    assert result["message"].startswith("the program failed twice in the same way: ")
    assert words in result["message"]
    assert "\n" not in result["message"]
    assert result["message"] in told
    first = result["lastFailure"]
    assert first["beforeFirstStep"] is True
    exception = first.get("exception", {})
    assert mistake == "exit_3" or f"{exception['type']}: {exception['message']}" in result["message"]


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        pytest.param(
            "forgotten_compile",
            "FitError: model is not compiled; call model.compile(optimizer, loss, metrics=…) before",
            marks=pytest.mark.slow,
        ),
        ("refused_later", "DataError: x:"),
    ],
)
def test_an_error_that_the_trainer_refuses_is_not_tried_again(tmp_path: Path, mistake: str, words: str) -> None:
    """Also if it comes after training: a restart would end there too."""
    result, told = run(tmp_path, mistake)
    assert result["reason"] == "ProgramFailed", told
    assert result["restarts"]["total"] == 0
    assert result["lastFailure"]["beforeFirstStep"] is (mistake == "forgotten_compile")
    assert result["message"].startswith("training failed, and a restart does not help: ")
    assert words in result["message"]


TWO = {"logicalCPUs": 2}


@pytest.mark.parametrize(
    ("mistake", "strategy", "roles", "options"),
    [
        ("own_step", "Mirrored", ("chief",), TWO),
        pytest.param("own_step", "MultiWorkerMirrored", ("chief", "worker"), {}, marks=pytest.mark.slow),
        pytest.param("own_step", "OneDevice", ("chief",), {}, marks=pytest.mark.slow),
        pytest.param("own_step", "ParameterServer", ("chief", "worker", "ps"), {}, marks=pytest.mark.slow),
        pytest.param("own_step_of_tf_keras", "Mirrored", ("chief",), TWO, marks=pytest.mark.slow),
        pytest.param("own_step_of_tf_keras", "MultiWorkerMirrored", ("chief", "worker"), {}, marks=pytest.mark.slow),
    ],
)
def test_a_training_step_outside_of_strategy_run_says_what_to_call(
    tmp_path: Path, mistake: str, strategy: str, roles: Sequence[str], options: dict[str, Any]
) -> None:
    """What `dtjob run` makes of a permanent exception shows in the test above."""
    with Cluster(tmp_path, strategy, dict.fromkeys(roles, 1), "mistakes.py", mistake, options=options) as cluster:
        cluster.start()
        exception = exception_of(cluster, "chief-0")
    assert (exception["message"], exception["permanent"]) == (OWN_STEPS, True)


LINE = r"tests/trainer/programs/mistakes\.py:\d+: "


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("typo_in_the_data", r"KeyError: 'los' \(chief-0, exit code 1\)"),
        pytest.param(
            "nan_loss", r"InvalidArgumentError: !!! Detected Infinity or NaN in output 0", marks=pytest.mark.slow
        ),
    ],
)
def test_the_same_exception_at_the_same_line_after_steps_is_not_tried_again(
    tmp_path: Path, mistake: str, words: str
) -> None:
    """Steps before the exception count, though they were made in the same call of TensorFlow."""
    result, told = run(tmp_path, mistake)
    assert result["reason"] == "ProgramFailed", told
    assert result["restarts"]["total"] == 1
    assert re.match(rf"the program failed twice [a-z ]+: {LINE}{words}", result["message"])
    assert mistake != "typo_in_the_data" or "chief-0 failed after step 20: " in told


def exception_of(run: Cluster, task: str) -> dict[str, Any]:
    """What a task told of the exception that ended it, of which the program is named without its folder."""
    assert run[task].exit_code() == 1, run[task].output()
    told: dict[str, Any] = run[task].status["exception"]
    return {**told, "location": re.sub(r"^(.*/)?mistakes\.py:\d+$", "mistakes.py", told["location"])}


def test_no_name_of_an_exception_makes_it_a_lost_peer_in_a_group(tmp_path: Path) -> None:
    """Also in a loop by hand, whose steps nobody counts."""
    told = {"type": "UnavailableError", "message": "my database is away", "location": "mistakes.py"}
    counts = {"chief": 1, "worker": 1}
    with Cluster(tmp_path, "MultiWorkerMirrored", counts, "mistakes.py", "own_loop") as cluster:
        cluster.start()
        assert [exception_of(cluster, task) for task in cluster.tasks] == [told, told]


def test_a_mistake_after_all_training_is_told_as_such(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, "mistakes.py", "save_into_a_missing_folder") as cluster:
        cluster.start()
        exception = exception_of(cluster, "chief-0")
    assert exception.pop("message").endswith("'no/such/model.keras'")
    assert exception == {"type": "FileNotFoundError", "location": "mistakes.py", "trained": True}
