# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.task: who a process is, from its environment."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dtjob_trainer.contract.settings import Checkpoint, Evaluation, TensorBoard
from dtjob_trainer.contract.strategy import ALONE, TRAITS
from dtjob_trainer.contract.task import Task, host_of
from dtjob_trainer.errors import TaskError
from tests.unit.fuzzed import TEXTS, VALUES, fuzzed

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
        "DTJOB_RENDEZVOUS_ADDRESS": "a:2",
        "DTJOB_STATUS_PORT": "2223",
        **changes,
    }


def task(tmp_path: Path, cluster: dict[str, list[str]] | None = None, **changes: str) -> Task:
    found = Task.from_environment(environment(tmp_path, cluster, **changes))
    assert found is not None
    return found


def test_a_program_run_by_hand_is_no_task() -> None:
    assert Task.from_environment({"PATH": "/bin"}) is None


def test_a_task_is_read_from_every_variable(tmp_path: Path) -> None:
    found = task(
        tmp_path,
        DTJOB_STRATEGY_OPTIONS='{"communication": "Ring"}',
        DTJOB_GRACE_SECONDS="7",
        DTJOB_PARENT="41",
        DTJOB_CHECKPOINT='{"directory": "/c", "everySteps": 5, "maxToKeep": 2, "writeMode": "Sync"}',
        DTJOB_EVALUATION='{"checkpoints": "Every"}',
        DTJOB_TENSORBOARD='{"everySteps": 50}',
        DTJOB_TERMINATION_LOG="/log",
        DTJOB_GPUS="2",
        DTJOB_RESTART_SIGNALS="SIGKILL,SIGSEGV",
    )
    assert (found.name, found.namespace, found.uid, found.id, found.attempt) == ("job", "ns", "u", "worker-1", 2)
    assert found.strategy_options == {"communication": "Ring"}
    assert (found.cluster_hash, found.status_port) == ("h", 2223)
    assert (found.rendezvous, found.rendezvous_port) == ("a:2", 2)
    assert (found.grace_seconds, found.parent, found.address) == (7.0, 41, "c:1")
    assert found.checkpoint == Checkpoint("/c", every_steps=5, max_to_keep=2, write_mode="Sync")
    assert (found.evaluation, found.tensorboard) == (Evaluation(every=True), TensorBoard(every_steps=50))
    assert (found.termination_log, found.gpus, found.restart_signals) == ("/log", 2, {9, 11})
    assert (task(tmp_path).evaluation, task(tmp_path).tensorboard) == (Evaluation(), None)


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


def test_a_task_is_the_chief_task_by_its_role_and_its_cluster(tmp_path: Path) -> None:
    assert task(tmp_path, DTJOB_ROLE="chief", DTJOB_INDEX="0").is_chief
    assert not task(tmp_path, DTJOB_INDEX="0").is_chief
    without_chief = {"worker": ["b:1", "c:1"]}
    assert task(tmp_path, without_chief, DTJOB_INDEX="0").is_chief
    assert not task(tmp_path, without_chief).is_chief


def test_a_task_knows_its_members_and_whether_it_only_serves(tmp_path: Path) -> None:
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
        ({"DTJOB_RESTART_SIGNALS": "SIGKILL,9"}, ["DTJOB_RESTART_SIGNALS", "'9'", "SIGKILL"]),
        ({"DTJOB_RENDEZVOUS_ADDRESS": "2224"}, ["DTJOB_RENDEZVOUS_ADDRESS is '2224'", "host:port"]),
        ({"DTJOB_RENDEZVOUS_ADDRESS": "a:"}, ["DTJOB_RENDEZVOUS_ADDRESS is 'a:'", "host:port"]),
        ({"DTJOB_RENDEZVOUS_ADDRESS": "a:b"}, ["DTJOB_RENDEZVOUS_ADDRESS is 'a:b'", "host:port"]),
        ({"DTJOB_DATA_SERVICE": "grpc://a"}, ["DTJOB_DATA_SERVICE is 'grpc://a'", "host:port"]),
    ],
)
def test_bad_values_are_named(tmp_path: Path, changes: dict[str, str], words: list[str]) -> None:
    with pytest.raises(TaskError) as refused:
        task(tmp_path, **changes)
    assert all(word in str(refused.value) for word in words)


def test_a_user_of_dtjob_run_trains_without_old_checkpoints_by_an_option() -> None:
    assert Task("a", "b", "c", "chief", 0).anew == "choose another checkpoint.storage"
    assert Task("a", "b", "c", "chief", 0, parent=41).anew == "run it again with --fresh"


@pytest.mark.parametrize(
    ("address", "host"),
    [("[fd00::1]:2222", "fd00::1"), ("digits-worker-0.digits:2222", "digits-worker-0.digits"), ("no-port", "")],
)
def test_an_address_is_split_into_its_host(address: str, host: str) -> None:
    assert host_of(address) == host


def test_the_evaluator_computes_alone() -> None:
    for strategy in TRAITS:
        assert Task("job", "ns", "uid", "evaluator", 0, strategy=strategy).traits is ALONE
        assert Task("job", "ns", "uid", "chief", 0, strategy=strategy).traits.name == strategy


VARIABLES = ("INDEX", "ATTEMPT", "STRATEGY", "CHECKPOINT", "EVALUATION", "TENSORBOARD", "STRATEGY_OPTIONS",
             "GRACE_SECONDS", "STATUS_PORT", "RENDEZVOUS_ADDRESS", "PARENT", "GPUS", "RESTART_SIGNALS", "DATA_SERVICE",
             "DATA_ADDRESS")  # fmt: skip


@fuzzed(60)
@given(
    changes=st.dictionaries(
        st.sampled_from(VARIABLES).map("DTJOB_{}".format), TEXTS | VALUES.map(json.dumps), max_size=3
    ),
    cluster=st.just(CLUSTER)
    | st.dictionaries(st.sampled_from(("chief", "worker", "ps")), VALUES)
    | VALUES.filter(bool),
)
def test_any_environment_is_a_task_or_is_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, changes: dict[str, str], cluster: Any
) -> None:
    """So nobody gets a TF_CONFIG of another cluster than the file says."""
    directory = tmp_path_factory.getbasetemp()
    try:
        found = Task.from_environment(environment(directory, cluster, **changes))
    except TaskError as error:
        told = str(error)
        assert any(name in told for name in ("DTJOB_", "cluster"))
    else:
        assert found is not None
        assert found.cluster == {role: tuple(addresses) for role, addresses in cluster.items()}
