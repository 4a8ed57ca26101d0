# SPDX-License-Identifier: Apache-2.0
"""The sides that train: what their manifests say."""

import ast
from pathlib import Path
from typing import Any

import pytest

from benchmarks.operators import training_jobs
from benchmarks.operators.recovery import VICTIMS
from benchmarks.operators.training_jobs import DIRECTORY, GROUPS, SIDES, Training
from dtjob.crd.answers.problems import problems

PROGRAM = Path(training_jobs.__file__).parents[1] / "programs" / "recovery.py"
each_strategy = pytest.mark.parametrize("strategy", GROUPS)


def manifest(side: str, strategy: str) -> dict[str, Any]:
    return SIDES[side]().training(Training("recovery-0", strategy, "dtjob-trainer:dev", 100))


def containers(found: dict[str, Any]) -> list[dict[str, Any]]:
    """The training container of each role of a TFJob."""
    return [one["template"]["spec"]["containers"][0] for one in found["spec"]["tfReplicaSpecs"].values()]


@each_strategy
@pytest.mark.parametrize("side", ["dtjob", "dtjob-own-image"])
def test_the_manifests_of_dtjob_are_valid(side: str, strategy: str) -> None:
    assert problems(manifest(side, strategy)) == []


@each_strategy
def test_all_sides_have_the_same_tasks_and_see_the_same_volume(strategy: str) -> None:
    ours, theirs = manifest("dtjob", strategy)["spec"], manifest("tfjob", strategy)["spec"]["tfReplicaSpecs"]
    counts = {role.lower(): one["replicas"] for role, one in theirs.items()}
    assert counts == {role: one.get("replicas", 1) for role, one in ours["replicaSpecs"].items()} == GROUPS[strategy]
    assert (ours["checkpoint"]["storage"]["mountPath"], ours["checkpoint"]["storage"]["mountOn"]) == (DIRECTORY, "All")
    for container in containers(manifest("tfjob", strategy)):
        assert container["volumeMounts"] == [{"name": "data", "mountPath": DIRECTORY}]


@each_strategy
def test_an_image_of_ones_own_runs_the_very_command_of_tfjob(strategy: str) -> None:
    ours = manifest("dtjob-own-image", strategy)["spec"]["replicaSpecs"].values()
    commands = [one["template"]["spec"]["containers"][0]["command"] for one in ours]
    for policy in ("tfjob", "tfjob-onfailure"):
        assert [one["command"] for one in containers(manifest(policy, strategy))] == commands


def test_the_policies_are_those_that_can_bring_a_group_back() -> None:
    for side, policy in (("tfjob", "ExitCode"), ("tfjob-onfailure", "OnFailure")):
        replicas = manifest(side, "ParameterServer")["spec"]["tfReplicaSpecs"].values()
        assert {one["restartPolicy"] for one in replicas} == {policy}


@each_strategy
def test_the_program_has_each_loop_that_is_asked_for(strategy: str) -> None:
    found = [node for node in ast.walk(ast.parse(PROGRAM.read_text())) if isinstance(node, ast.Dict)]
    (loops,) = [one for one in found if any(isinstance(value, ast.Name) for value in one.values)]
    names = {key.value for key in loops.keys if isinstance(key, ast.Constant)}
    assert {"dtjob", Training("a", strategy, "b", 1).own_loop} <= names


@each_strategy
def test_every_task_that_is_killed_is_one_of_the_group(strategy: str) -> None:
    assert {role for role, _ in VICTIMS[strategy]} == GROUPS[strategy].keys()
    assert all(index < GROUPS[strategy][role] for role, index in VICTIMS[strategy])
