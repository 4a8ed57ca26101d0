# SPDX-License-Identifier: Apache-2.0
"""Scripts that know nothing of dtjob (tests/programs) come to the numbers of plain `python`, under each strategy."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.local_runs import ROOT, LocalRun, Statuses, written_job

PROGRAMS = ROOT / "tests" / "programs"
SCRIPTS = sorted(str(path.relative_to(PROGRAMS)) for path in PROGRAMS.glob("*/*.py"))
STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "Mirrored": {"strategyOptions": {"logicalCPUs": 2}, "replicaSpecs": {"chief": {}}},
    "MultiWorkerMirrored": {"replicaSpecs": {"chief": {}, "worker": {"replicas": 1}}},
    "ParameterServer": {"replicaSpecs": {"chief": {}, "worker": {"replicas": 1}, "ps": {"replicas": 1}}},
}
RELATIVE, ABSOLUTE = 2e-6, 1e-6
NEARLY = {
    ("keras_guides/transfer_learning.py", "Mirrored"): 0.02,
    ("keras_guides/transfer_learning.py", "MultiWorkerMirrored"): 0.02,
    ("keras_guides/mixed_precision.py", "Mirrored"): 1e-3,
    ("keras_guides/mixed_precision.py", "MultiWorkerMirrored"): 1e-3,
    ("examples/distillation.py", "Mirrored"): 1e-5,
    ("examples/distillation.py", "MultiWorkerMirrored"): 1e-5,
}
"""How far numbers may be apart: BatchNormalization normalises by each replica's own rows, and sums of float16 or of a
large temperature are rounded."""
REFUSED = {
    **{("keras_guides/loop_from_scratch.py", strategy): "runs outside of strategy.run" for strategy in STRATEGIES},
}
"""What nobody can distribute, and words of the sentence that says so."""
QUICK = {("distribute/multi_worker_loop.py", "ParameterServer")}
"""The case of `make test`. The others are slow: test_model_fit.py trains scripts without dtjob in every run."""

KILLED = {"Mirrored": ("chief-0", "chief-0"), "MultiWorkerMirrored": ("chief-0", "worker-0")}
"""The tasks that are killed, in their order, by strategy."""
RANDOM = "random"
"""The name of numbers that depend on random ones, which are others for each replica and after a restart."""
OWN_LOOPS = {
    f"{name}.py"
    for name in (
        "distribute/input_pipelines",
        "distribute/multi_worker_loop",
        "distribute/own_loop",
        "keras_guides/loop_from_scratch",
    )
}
"""Scripts that call no fit: dtjob knows nothing of their steps."""
WITHOUT_GRADIENTS = {"distribute/input_pipelines.py"}
"""Scripts that train nothing, so that nobody sees when they are in a loop."""
SECONDS = 200.0


def result(output: str) -> Any:
    """What the script says at its end."""
    (line,) = (line for line in output.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


@cache
def plain(script: str, directory: Path) -> Any:
    """The numbers of plain `python`."""
    ran = subprocess.run(
        [sys.executable, str(PROGRAMS / script)],
        cwd=directory,
        env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"},
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert ran.returncode == 0, ran.stderr
    return result(ran.stdout)


@pytest.fixture(scope="session")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


def manifest(script: str, strategy: str, file: Path, **spec: Any) -> Path:
    """The job of a script, written to `file`."""
    default = {
        "strategy": strategy,
        **STRATEGIES[strategy],
        "program": {"entrypoint": str(PROGRAMS / script)},
        "checkpoint": {"storage": {"volume": {"emptyDir": {}}}},
        "failurePolicy": {"maxRestartsWithoutProgress": 0},
    }
    return written_job(file, "job", **{**default, **spec})


def output_of(work_directory: Path) -> str:
    """What the chief has printed."""
    return "".join(log.read_text() for log in sorted(work_directory.glob("job/run-*/logs/*chief*.log")))


def without_random(work_directory: Path) -> Any:
    """The numbers that the chief has come to and that do not depend on random ones."""
    return {name: value for name, value in result(output_of(work_directory)).items() if name != RANDOM}


def numbers(value: Any) -> Any:
    """`value` with lists and dicts in one level, for `pytest.approx`."""
    match value:
        case dict():
            return {f"{name}.{inner}": x for name, each in value.items() for inner, x in numbers(each).items()}
        case list():
            return numbers({str(place): each for place, each in enumerate(value)})
    return {"": value}


@pytest.mark.parametrize(
    ("script", "strategy"),
    [
        pytest.param(script, strategy, marks=[] if (script, strategy) in QUICK else [pytest.mark.slow])
        for script in SCRIPTS
        for strategy in STRATEGIES
    ],
)
def test_a_script_comes_to_the_numbers_of_plain_python(
    script: str, strategy: str, tmp_path: Path, directory: Path
) -> None:
    with LocalRun(manifest(script, strategy, tmp_path / "job.yaml"), tmp_path / "work") as run:
        code, summary = run.end(SECONDS)
    if (words := REFUSED.get((script, strategy))) is not None:
        assert code == 1
        assert words in str(summary)
        return
    assert code == 0, (summary, run.told)
    tolerance = NEARLY.get((script, strategy), RELATIVE)
    found, expected = without_random(tmp_path / "work"), dict(plain(script, directory))
    expected.pop(RANDOM, None)
    assert numbers(found) == pytest.approx(numbers(expected), rel=tolerance, abs=max(ABSOLUTE, tolerance / 10))


@pytest.mark.slow
@pytest.mark.parametrize("strategy", KILLED)
@pytest.mark.parametrize("script", [script for script in SCRIPTS if script not in OWN_LOOPS])
@pytest.mark.timeout(600)
def test_a_script_whose_tasks_are_killed_comes_to_the_same_bits(script: str, strategy: str, tmp_path: Path) -> None:
    """By SIGKILL: one task after a third of all steps, one after two thirds."""
    checkpoint = {"storage": {"volume": {"emptyDir": {}}}, "everySteps": 2}
    policy = {"maxRestartsWithoutProgress": 5, "backoff": {"initialSeconds": 0}}
    file = manifest(script, strategy, tmp_path / "job.yaml", checkpoint=checkpoint, failurePolicy=policy)
    with LocalRun(file, tmp_path / "calm") as run:
        code, calm = run.end(SECONDS)
    assert code == 0, (calm, run.told)
    with LocalRun(file, tmp_path / "killed") as run:
        before: set[int] = set()
        for third, task in enumerate(KILLED[strategy], 1):
            step = calm["steps"] * third // 3

            def trains(statuses: Statuses, task: str = task, step: int = step) -> bool:
                status = statuses.get(task, {})
                there = status.get("state") == "training" and status["trainingPid"] not in before
                return there and (status.get("step") or 0) >= step

            statuses = run.wait_until(trains, f"step {step} of a new {task}")
            os.kill(statuses[task]["trainingPid"], signal.SIGKILL)
            before.update(each["trainingPid"] for each in statuses.values() if each.get("trainingPid"))
        code, killed = run.end(SECONDS)
    assert code == 0, (killed, run.told)
    assert killed["restarts"]["byCause"] == {"Signal": 2}
    assert without_random(tmp_path / "killed") == without_random(tmp_path / "calm")


@pytest.mark.slow
@pytest.mark.parametrize("script", sorted(OWN_LOOPS - WITHOUT_GRADIENTS - {script for script, _ in REFUSED}))
@pytest.mark.timeout(600)
def test_a_loop_of_its_own_that_is_killed_comes_to_the_same_bits(script: str, tmp_path: Path) -> None:
    """dtjob knows of no step of it, so it runs again from the top. The chief is killed as it trains, then a worker."""
    policy = {"maxRestartsWithoutProgress": 5, "backoff": {"initialSeconds": 0}}
    file = manifest(script, "MultiWorkerMirrored", tmp_path / "job.yaml", failurePolicy=policy)
    with LocalRun(file, tmp_path / "calm") as run:
        code, calm = run.end(SECONDS)
    assert code == 0, (calm, run.told)
    with LocalRun(file, tmp_path / "killed") as run:
        killed: set[int] = set()
        for task in ("chief-0", "worker-0"):

            def trains(statuses: Mapping[str, Any], task: str = task, before: Collection[int] = tuple(killed)) -> bool:
                status = statuses.get(task, {})
                return bool(status.get("trainsItself")) and status["trainingPid"] not in before

            pid = run.wait_until(trains, f"a loop of {task}")[task]["trainingPid"]
            os.kill(pid, signal.SIGKILL)
            killed |= {each["trainingPid"] for each in run.statuses().values() if each.get("trainingPid")} | {pid}
        code, summary = run.end(SECONDS)
    assert code == 0, (summary, run.told)
    assert without_random(tmp_path / "killed") == without_random(tmp_path / "calm")
