"""dtjob_trainer.contract.task: who a process is, from its environment."""

import json
import math
from pathlib import Path

import pytest

from dtjob_trainer.contract.task import DEFAULT_EVERY_SECONDS, Checkpoint, Evaluation, ProfiledSteps, Task, TensorBoard
from dtjob_trainer.errors import TaskError

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def environment(tmp_path: Path, cluster: dict[str, list[str]] | None = None, **changes: str) -> dict[str, str]:
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(CLUSTER if cluster is None else cluster))
    return {
        "DTJOB_NAME": "job",
        "DTJOB_NAMESPACE": "ns",
        "DTJOB_UID": "u",
        "DTJOB_ROLE": "worker",
        "DTJOB_INDEX": "1",
        "DTJOB_ATTEMPT": "2",
        "DTJOB_STRATEGY": "MultiWorkerMirrored",
        "DTJOB_CLUSTER_FILE": str(file),
        "DTJOB_CLUSTER_HASH": "h",
        "DTJOB_RENDEZVOUS": "a:2",
        "DTJOB_STATUS_PORT": "2223",
        **changes,
    }


def task(tmp_path: Path, cluster: dict[str, list[str]] | None = None, **changes: str) -> Task:
    found = Task.from_environment(environment(tmp_path, cluster, **changes))
    assert found is not None
    return found


def test_a_program_run_by_hand_is_no_task() -> None:
    assert Task.from_environment({"PATH": "/bin"}) is None


def test_reads_every_variable(tmp_path: Path) -> None:
    found = task(
        tmp_path,
        DTJOB_STRATEGY_OPTIONS='{"communication": "Ring"}',
        DTJOB_GRACE_SECONDS="7",
        DTJOB_PARENT="41",
        DTJOB_CHECKPOINT='{"directory": "/c", "everySteps": 5, "keep": 2, "async": false}',
    )
    assert (found.name, found.namespace, found.uid, found.id, found.attempt) == ("job", "ns", "u", "worker-1", 2)
    assert found.strategy_options == {"communication": "Ring"}
    assert (found.cluster_hash, found.rendezvous, found.status_port) == ("h", "a:2", 2223)
    assert (found.grace_seconds, found.parent, found.address) == (7.0, 41, "c:1")
    assert found.checkpoint == Checkpoint("/c", every_steps=5, keep=2, asynchronous=False)


def test_evaluation_says_what_to_evaluate_and_what_is_best(tmp_path: Path) -> None:
    assert task(tmp_path).evaluation == Evaluation()
    best = '{"checkpoints": "Every", "best": {"metric": "loss", "mode": "Min"}}'
    found = task(tmp_path, DTJOB_EVALUATION=best).evaluation
    assert found == Evaluation(every=True, best_metric="loss", best_is_highest=False)
    assert found.is_better(0.1, 0.2)
    assert found.is_better(0.1, None)
    assert not found.is_better(0.2, 0.2)
    assert not found.is_better(math.nan, None)
    assert Evaluation(best_metric="accuracy").is_better(0.3, 0.2)
    with pytest.raises(TaskError, match="DTJOB_EVALUATION"):
        task(tmp_path, DTJOB_EVALUATION='{"best": {"metric": "loss"}}')


def test_tensorboard_says_which_steps_to_write_and_to_profile(tmp_path: Path) -> None:
    assert task(tmp_path).tensorboard is None
    assert task(tmp_path, DTJOB_TENSORBOARD="{}").tensorboard == TensorBoard(every_steps=100, profile=None)
    found = task(tmp_path, DTJOB_TENSORBOARD='{"everySteps": 50, "profile": {"firstStep": 10, "steps": 3}}').tensorboard
    assert found == TensorBoard(50, ProfiledSteps(10, 3))
    for text in ('{"everySteps": 0}', '{"profile": {"steps": 3}}', '{"profile": {"firstStep": "1"}}'):
        with pytest.raises(TaskError, match=r"DTJOB_TENSORBOARD: everySteps, profile\.firstStep"):
            task(tmp_path, DTJOB_TENSORBOARD=text)


def test_a_profile_begins_at_its_first_step_or_where_a_restart_comes_into_it() -> None:
    asked = ProfiledSteps(first_step=10, steps=3)
    assert asked.last_step == 12
    assert [done for done in range(20) if asked.begins(done, 1)] == [9, 10, 11]
    assert [done for done in range(0, 20, 4) if asked.begins(done, 4)] == [8]


def test_without_everySteps_the_clock_saves() -> None:  # noqa: N802
    assert Checkpoint.from_json('{"directory": "/c"}').every_seconds == DEFAULT_EVERY_SECONDS
    assert Checkpoint.from_json('{"directory": "/c", "everySteps": 9}').every_seconds is None


def test_each_strategy_sees_its_own_roles_only(tmp_path: Path) -> None:
    mirrored = task(tmp_path).tf_config()
    assert mirrored == {
        "cluster": {"chief": ["a:1"], "worker": ["b:1", "c:1"]},
        "task": {"type": "worker", "index": 1},
    }
    served = task(tmp_path, DTJOB_STRATEGY="ParameterServer").tf_config()
    assert served is not None
    assert served["cluster"] == CLUSTER
    assert task(tmp_path, DTJOB_ROLE="evaluator", DTJOB_INDEX="0").tf_config() is None
    assert task(tmp_path, DTJOB_STRATEGY="Mirrored", DTJOB_ROLE="chief", DTJOB_INDEX="0").tf_config() is None


def test_chief_task(tmp_path: Path) -> None:
    assert task(tmp_path, DTJOB_ROLE="chief", DTJOB_INDEX="0").is_chief
    assert not task(tmp_path, DTJOB_INDEX="0").is_chief
    without_chief = {"worker": ["b:1", "c:1"]}
    assert task(tmp_path, without_chief, DTJOB_INDEX="0").is_chief
    assert not task(tmp_path, without_chief).is_chief


def test_members_and_servers(tmp_path: Path) -> None:
    assert task(tmp_path).members == ("chief-0", "worker-0", "worker-1")
    assert not task(tmp_path).serves_only
    assert task(tmp_path, DTJOB_STRATEGY="ParameterServer").serves_only
    evaluator = task(tmp_path, DTJOB_ROLE="evaluator", DTJOB_INDEX="0")
    assert (evaluator.in_cluster, evaluator.members, evaluator.address) == (False, ("evaluator-0",), None)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"DTJOB_ROLE": "boss"}, ["DTJOB_ROLE", "chief"]),
        ({"DTJOB_INDEX": "-1"}, ["DTJOB_INDEX", "whole number"]),
        ({"DTJOB_STRATEGY": "Magic"}, ["DTJOB_STRATEGY", "Mirrored"]),
        ({"DTJOB_CHECKPOINT": "{}"}, ["DTJOB_CHECKPOINT", "directory"]),
        ({"DTJOB_CHECKPOINT": "x"}, ["DTJOB_CHECKPOINT", "JSON"]),
        ({"DTJOB_STRATEGY_OPTIONS": "[1]"}, ["DTJOB_STRATEGY_OPTIONS", "object"]),
        ({"DTJOB_CLUSTER_FILE": "/nowhere"}, ["DTJOB_CLUSTER_FILE"]),
    ],
)
def test_bad_values_are_named(tmp_path: Path, changes: dict[str, str], words: list[str]) -> None:
    with pytest.raises(TaskError) as refused:
        task(tmp_path, **changes)
    assert all(word in str(refused.value) for word in words)
