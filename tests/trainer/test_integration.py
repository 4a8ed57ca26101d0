# SPDX-License-Identifier: Apache-2.0
"""`program.integration: None`: dtjob changes nothing in the process of the program."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.support.harness import PROGRAMS, ROOT, Cluster, by_hand
from tests.unit.page_commands import blocks

SEED = {"PYTHONHASHSEED": "0"}
"""TensorFlow has module variables that depend on the order of a set."""
NONE = {**SEED, "DTJOB_INTEGRATION": "None"}
PROGRAM = "untouched.py"
BEGUN = {"tensorflow.python.eager.context._context"}
"""Not replaced: TensorFlow has begun, for the strategy."""
PAGE = ROOT / "docs" / "training" / "integration.md"
LIBRARIES = ("tensorflow", "keras", "tf_keras", "os.")


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of `python untouched.py`."""
    file = tmp_path_factory.mktemp("plain") / "found.json"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "trainer_image"), "TF_CPP_MIN_LOG_LEVEL": "2", **SEED}
    subprocess.run([sys.executable, PROGRAMS / PROGRAM, file], env=env, check=True)
    return dict(json.loads(file.read_text()))


@pytest.fixture(scope="module")
def integrated(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of the same program as a worker of a job with `Full`."""
    return in_a_job(tmp_path_factory.mktemp("integrated"), SEED, fresh=False)


def in_a_job(directory: Path, env: dict[str, str], *, fresh: bool) -> dict[str, Any]:
    """Of the same program as a worker of a job."""
    file = directory / "found.json"
    counts = {"worker": 1}
    with Cluster(directory, "MultiWorkerMirrored", counts, PROGRAM, str(file), env=env, fresh=fresh) as run:
        run.run()
    return dict(json.loads(file.read_text()))


def differences(plain: dict[str, Any], found: dict[str, Any]) -> set[str]:
    """The functions that are others in the job, or that only one of the two has."""
    theirs, ours = plain["functions"], found["functions"]
    several = {name for name in theirs.keys() & ours.keys() if theirs[name] != ours[name]}
    return several | {name for name in theirs.keys() ^ ours.keys() if name.startswith(LIBRARIES)}


def test_without_integration_every_function_is_that_of_plain_python(tmp_path: Path, plain: dict[str, Any]) -> None:
    found = in_a_job(tmp_path, NONE, fresh=True)
    assert differences(plain, found) == set()
    signals = found["state"].pop("signals")
    assert found["state"] == {name: value for name, value in plain["state"].items() if name != "signals"}
    assert set(signals) == {"SIGTERM", *plain["state"]["signals"]}


def test_whatever_dtjob_changes_otherwise_is_a_hook_of_the_table(
    plain: dict[str, Any], integrated: dict[str, Any], tmp_path: Path
) -> None:
    """docs/reference/hooks.md is made of this table."""
    listed = tmp_path / "table.json"
    by_hand("hooks_by_home.py", str(listed), directory=tmp_path)
    table = json.loads(listed.read_text())
    in_both = plain["functions"].keys() & integrated["functions"].keys()  # a module may be imported in one alone
    found = (differences(plain, integrated) & in_both) - BEGUN
    assert found - table.keys() == set()
    lasting = {name for name, lasts in table.items() if lasts == "process"}
    assert len(found & lasting) > 20, "the comparison is known to see them"
    assert integrated["state"]["strategy"] is True


def test_functions_of_the_operating_system_are_never_others(plain: dict[str, Any], integrated: dict[str, Any]) -> None:
    """A script may take a lock by `os.mkdir`, which only one process can make."""
    assert not {name for name in differences(plain, integrated) if name.startswith("os.")}


def weights_of(directory: Path, how: str, workers: int) -> list[float]:
    """The weights after training, which must be the same in each worker."""
    counts = {"worker": workers}
    with Cluster(directory, "MultiWorkerMirrored", counts, "not_integrated.py", how, env=NONE, checkpoint={}) as run:
        run.run()
        lines = {line for member in run.members.values() for line in member.output().splitlines()}
    (found,) = (line for line in lines if line.startswith("weights "))
    return [float(number) for number in found.split()[1:]]


def test_a_program_trains_by_itself_and_by_fit_and_train_without_integration(tmp_path: Path) -> None:
    """Its own strategy reads TF_CONFIG; `dt.strategy()` makes that of the job."""
    by_itself = weights_of(tmp_path / "own", "own", 2)
    for how in ("fit", "train"):
        assert weights_of(tmp_path / how, how, 2) == pytest.approx(by_itself, rel=1e-5)


def test_fit_without_the_strategy_of_the_job_says_what_to_call(tmp_path: Path) -> None:
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, "not_integrated.py", "late", env=NONE) as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert (
            "StrategyError: with spec.program.integration: None, call dtjob_trainer.strategy() at the"
            in run["chief-0"].output()
        )


def test_the_program_of_the_page_trains_under_the_strategy_of_the_job(tmp_path: Path) -> None:
    (program,) = (code for language, code in blocks(PAGE) if language == "python")
    script = tmp_path / "page.py"
    script.write_text(f"{program}\nprint('replicas', model.distribute_strategy.num_replicas_in_sync)")
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, script, env=NONE, options={"logicalCPUs": 2}) as run:
        run.run()
        assert run["chief-0"].status["step"] == 4
        assert "replicas 2" in run["chief-0"].output()
