# SPDX-License-Identifier: Apache-2.0
"""What Prometheus reads of the operator."""

from typing import Any

import pytest
from aiohttp.test_utils import make_mocked_request

from dtjob import __version__
from dtjob.controller.cluster import ClusterError
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.kube.endpoints.metrics import Metrics, new_restarts
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import World, job_manifest


def read(metrics: Metrics) -> dict[str, float]:
    """Every sample by its name with labels, as a scraper without wishes reads it."""
    answer = metrics.answer(make_mocked_request("GET", "/metrics"))
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert isinstance(answer.body, bytes)
    lines = (line for line in answer.body.decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def stored(name: str, status: dict[str, Any] | None = None) -> Manifest:
    made = job_manifest(builders.job(name=name, uid=name))
    made["spec"]["strategy"] = "Mirrored"
    made["metadata"]["resourceVersion"] = "1"
    return {**made, "status": status} if status is not None else made


def test_a_new_operator_is_no_leader_and_has_its_version() -> None:
    metrics = Metrics(clock=lambda: 1000.0)
    samples = read(metrics)
    assert any(name.startswith("dtjob_build_info{") and f'version="{__version__}"' in name for name in samples)
    assert samples["dtjob_leader"] == 0
    assert samples["dtjob_last_resync_timestamp_seconds"] == 0
    assert samples['dtjob_reconciles_total{result="bug"}'] == 0
    assert samples["process_resident_memory_bytes"] > 0
    assert not any(name.startswith("dtjob_job") or "_created" in name for name in samples)
    metrics.leads()
    metrics.resynced()
    samples = read(metrics)
    assert (samples["dtjob_leader"], samples["dtjob_last_resync_timestamp_seconds"]) == (1, 1000)


def test_openmetrics_for_who_prefers_it() -> None:
    answer = Metrics().answer(make_mocked_request("GET", "/metrics", {"Accept": "application/openmetrics-text"}))
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text")
    assert isinstance(answer.body, bytes)
    assert answer.body.endswith(b"# EOF\n")


def test_jobs_are_those_of_the_store_and_a_deleted_job_leaves_no_metrics() -> None:
    metrics, store, queue = Metrics(), Store(), WorkQueue[tuple[str, str]]()
    metrics.watch(store, queue)
    store.apply(stored("a", {"phase": "Running"}))
    store.apply(stored("b"))
    queue.add(("default", "a"))
    samples = read(metrics)
    assert samples['dtjob_jobs{phase="Running",strategy="Mirrored"}'] == 1
    assert samples['dtjob_jobs{phase="Pending",strategy="Mirrored"}'] == 1
    assert samples["dtjob_workqueue_depth"] == 1
    assert samples['dtjob_job_phase{job_name="a",job_namespace="default",phase="Running",reason=""}'] == 1
    store.remove(stored("a"))
    samples = read(metrics)
    assert 'dtjob_jobs{phase="Running",strategy="Mirrored"}' not in samples
    assert not any(name.startswith("dtjob_job_") and 'job_name="a"' in name for name in samples)


@pytest.mark.parametrize(
    ("old", "new", "restarts"),
    [
        ({}, {}, {}),
        ({}, {"total": 1, "causes": {"OOMKilled": 1}}, {"OOMKilled": 1}),
        ({"total": 1, "causes": {"A": 1}}, {"total": 2, "causes": {"A": 1, "B": 1}}, {"B": 1}),
        ({"total": 1, "causes": {"A": 1}}, {"total": 1, "causes": {"B": 1}}, {}),  # another cause of the same restart
        ({"total": 2, "causes": {"A": 2}}, {"total": 2, "causes": {"A": 2}, "evaluator": 1}, {}),
    ],
)
def test_new_restarts_are_the_difference_of_two_statuses(
    old: dict[str, Any], new: dict[str, Any], restarts: dict[str, int]
) -> None:
    assert new_restarts({"restarts": old}, {"restarts": new}) == restarts


@pytest.mark.parametrize(
    ("causes", "cause", "restarts"),
    [
        ({"Disruption": 3, "Error": 1}, "Error", {"Error": 1}),
        ({"Disruption": 4}, "Disruption", {"Disruption": 1}),
        ({"Disruption": 3, "Signal": 1}, "Disruption", {"Signal": 1}),  # a crash, and no incident
        ({"Disruption": 3, "Signal": 1, "OOMKilled": 1}, "OOMKilled", {"Signal": 1, "OOMKilled": 1}),
    ],
)
def test_restarts_that_get_another_cause_as_a_new_one_comes_are_not_counted_twice(
    causes: dict[str, int], cause: str, restarts: dict[str, int]
) -> None:
    """A lost node showed after its peers had failed three times."""
    old = {"restarts": {"total": 3, "causes": {"Error": 3}}}
    new = {"restarts": {"total": sum(causes.values()), "causes": causes}, "internal": {"incident": {"cause": cause}}}
    assert new_restarts(old, new) == restarts


def test_the_restarts_that_a_status_tells_of_are_counted_by_cause() -> None:
    metrics = Metrics()
    metrics.status_written({}, {"restarts": {"total": 1, "causes": {"OOMKilled": 1}, "evaluator": 1}})
    samples = read(metrics)
    assert samples['dtjob_restarts_total{cause="OOMKilled"}'] == 1
    assert samples["dtjob_evaluator_restarts_total"] == 1


def test_reconciles_are_counted_by_their_result() -> None:
    metrics = Metrics()
    with World(builders.job(), metrics) as world:
        world.cluster.fail_next = ClusterError("timeout")
        world.run(1)
    samples = read(metrics)
    assert samples['dtjob_reconciles_total{result="failed_call"}'] == 1
    assert samples['dtjob_reconciles_total{result="success"}'] >= 1
    ended = sum(value for name, value in samples.items() if name.startswith("dtjob_reconciles_total{"))
    assert samples["dtjob_reconcile_duration_seconds_count"] == ended
