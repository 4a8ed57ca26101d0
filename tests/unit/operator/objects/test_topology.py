# SPDX-License-Identifier: Apache-2.0
"""Names, hosts and TF_CONFIG."""

import gc
from weakref import ref

import pytest

from dtjob.api.spec.replica_specs import Role
from dtjob.objects import topology
from tests.unit.operator import builders


def test_a_synchronous_job_has_its_tasks_and_its_cluster_spec():
    job = builders.job(evaluator=True)
    assert [task.id for task in topology.tasks(job)] == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert topology.cluster_spec(job) == {
        "chief": ["digits-chief-0.digits:2222"],
        "worker": ["digits-worker-0.digits:2222", "digits-worker-1.digits:2222"],
    }
    assert topology.chief_task(job).id == "chief-0"


def test_worker_0_is_the_chief_task_of_a_job_without_a_chief():
    assert topology.chief_task(builders.job(chief=False)).id == "worker-0"


def test_only_elastic_workers_have_a_min_count() -> None:
    elastic = builders.job(workers=4, elasticPolicy={"minReplicas": 2})
    assert topology.min_count(elastic, Role.WORKER) == 2
    assert topology.min_count(elastic, Role.CHIEF) is None
    assert topology.min_count(builders.job(workers=4, elasticPolicy={"minReplicas": 4}), Role.WORKER) is None
    assert topology.min_count(builders.job(workers=4, elasticPolicy={}), Role.WORKER) is None
    assert topology.min_count(builders.job(), Role.WORKER) is None


def test_the_cluster_spec_has_parameter_servers_and_the_given_port():
    job = builders.job("ParameterServer", workers=1, ps=1, network={"port": 4000})
    assert topology.cluster_spec(job) == {
        "chief": ["digits-chief-0.digits:4000"],
        "worker": ["digits-worker-0.digits:4000"],
        "ps": ["digits-ps-0.digits:4000"],
    }


@pytest.mark.parametrize("strategy", ["Default", "OneDevice", "Mirrored", "CentralStorage"])
def test_single_pod_strategies_have_their_chief_only(strategy: str):
    assert list(topology.cluster_spec(builders.job(strategy, evaluator=True))) == ["chief"]


def test_tf_config_names_the_task_and_keeps_the_evaluator_outside():
    job = builders.job(evaluator=True)
    config = topology.tf_config(topology.cluster_spec(job), builders.task("evaluator-0"))
    assert config["task"] == {"type": "evaluator", "index": 0}
    assert config["cluster"] == topology.cluster_spec(job)
    assert "evaluator" not in config["cluster"]


def test_the_hash_is_that_of_the_cluster_spec():
    same = [builders.job(), builders.job(evaluator=True, uid="other"), builders.job(program=False)]
    different = [
        builders.job(workers=3),
        builders.job(chief=False),
        builders.job(name="other"),
        builders.job(network={"port": 4000}),
        builders.job("ParameterServer", ps=1),
        builders.job("ParameterServer", ps=2),
        builders.job("Mirrored"),
    ]
    assert len({topology.cluster_hash(job) for job in same}) == 1
    assert len({topology.cluster_hash(job) for job in (same[0], *different)}) == 1 + len(different)


def test_the_cluster_spec_is_hashed_once_for_all_pods():
    """Each of N pods names the hash of N addresses: 42 s of one CPU for 4,000 workers, if each computed it."""
    job = builders.job(name="counted")
    assert topology.cluster_hash(job) is topology.cluster_hash(job)


@pytest.mark.parametrize(
    ("strategy", "connected"),
    [
        ("MultiWorkerMirrored", ["chief-0", "worker-0", "worker-1"]),
        ("ParameterServer", ["chief-0", "worker-0", "worker-1", "ps-0"]),
        ("Mirrored", []),
    ],
)
def test_the_strategy_decides_which_tasks_are_connected(strategy: str, connected: list[str]):
    job = builders.job(strategy, ps=int(strategy == "ParameterServer"), evaluator=True)
    assert [task.id for task in topology.tasks(job) if topology.connected(job, task)] == connected


def test_the_tasks_of_many_jobs_do_not_stay_in_memory():
    """Each list may have 8,000 tasks, and a job needs no pod to have one."""
    first = ref(topology.tasks(builders.job(workers=20))[-1])
    for workers in range(21, 100):
        topology.tasks(builders.job(workers=workers))
    gc.collect()
    assert first() is None
