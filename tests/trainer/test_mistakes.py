# SPDX-License-Identifier: Apache-2.0
"""Mistakes that users make, with `dtjob run`: a program that fails twice alike before its first step is not tried
again, and one line says what is wrong. In a cluster the same words stand in the job's status (tests/cluster)."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dtjob_trainer.process.failure import OWN_STEPS
from tests.trainer.support.local_runs import LocalRun, manifest

pytestmark = pytest.mark.timeout(300)

PROGRAM = "tests/trainer/programs/mistakes.py"
RESTARTS = 2

BEFORE_THE_FIRST_STEP = [
    ("import_error", "ModuleNotFoundError: No module named 'no_such_module' (chief-0, exit code 1)"),
    ("missing_file", "FileNotFoundError: [Errno 2] No such file or directory: '/data/no-such-file.npz' (chief-0, "),
    ("exit_3", "exit code 3 (chief-0)"),
    (
        "wrong_shapes",
        "expected axis -1 of input shape to have value 5, but received input with shape (None, 8) "
        "(x (None, 8), y (None,), the model takes (None, 5), and gives (None, 3)) (chief-0, exit code 1)",
    ),
    ("out_of_memory", "MemoryError: Unable to allocate 8.00 PiB for an array with shape (1125899906842624,)"),
    pytest.param(
        "wrong_targets",
        "input shapes: [?,7], [?,3]. (x (None, 8), y (None, 7), the model takes (None, 8), and gives (None, 3)) (chief",
        marks=pytest.mark.slow,
    ),
    pytest.param("exit_with_words", "SystemExit: no data for this day (chief-0, exit code 1)", marks=pytest.mark.slow),
    pytest.param("nan_data", "InvalidArgumentError: !!! Detected Infinity or NaN", marks=pytest.mark.slow),
]


def run(tmp_path: Path, mistake: str, **spec: Any) -> tuple[dict[str, Any], str]:
    """The summary of a job that fails over this mistake, and what was told meanwhile."""
    file = manifest(
        "digits-default.yaml",
        tmp_path / "job.yaml",
        1,
        **spec,
        checkpoint=None,
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
    assert result["message"].startswith("the program failed twice before its first step: ")
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
        ("forgotten_compile", "FitError: model is not compiled; call model.compile(optimizer, loss, metrics=…) before"),
        ("refused_later", "DataError: x:"),
    ],
)
def test_an_error_that_the_trainer_refuses_is_not_tried_again(tmp_path: Path, mistake: str, words: str) -> None:
    """Also if it comes after training: a restart would end there too."""
    result, told = run(tmp_path, mistake)
    assert result["reason"] == "ProgramFailed", told
    assert result["restarts"]["total"] == 0
    assert result["lastFailure"]["beforeFirstStep"] is (mistake == "forgotten_compile")
    assert result["message"].startswith("the program failed, and a restart does not help: ")
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
    result, told = run(
        tmp_path, mistake, strategy=strategy, replicaSpecs={role: {} for role in roles}, strategyOptions=options
    )
    assert result["reason"] == "ProgramFailed", told
    assert result["restarts"]["total"] == 0
    assert f": {OWN_STEPS} (" in result["message"]


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        ("nan_loss", "failed after step 1: InvalidArgumentError: !!! Detected Infinity or NaN in output 0 of graph op"),
        pytest.param("own_loop", "failed: ValueError: after four steps that nobody", marks=pytest.mark.slow),
    ],
)
def test_a_failure_after_a_step_uses_the_budget_of_restarts(tmp_path: Path, mistake: str, words: str) -> None:
    """Also where it was the program's own loop, whose steps nobody counts."""
    result, told = run(tmp_path, mistake)
    assert result["reason"] == "MaxRestartsExceeded", told
    assert result["restarts"]["total"] == RESTARTS
    assert words in result["message"]
    assert result["lastFailure"].get("beforeFirstStep") is (False if mistake == "nan_loss" else None)
