# SPDX-License-Identifier: Apache-2.0
"""The tables of jobs and of Events, and the other forms in which jobs are listed."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from dtjob.cli.watching.listing import Form, event_table, table, watched
from dtjob.client.cluster import Cluster
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import JOBS, NOW, RUNNING, event, job


def versioned(version: str, uid: str = "u", **status: Any) -> dict[str, Any]:
    found = job(**status)
    return {**found, "metadata": {**found["metadata"], "uid": uid, "name": uid, "resourceVersion": version}}


@pytest.fixture
def listed(dtjob: Any, server: ApiServer, tmp_path: Path) -> Any:
    """`dtjob list OPTIONS…` with two jobs in the cluster."""
    server.answer(f"GET {JOBS}", {"items": [job(**RUNNING), job()], "metadata": {"resourceVersion": "1"}})
    server.answer(f"GET {JOBS}/digits", job(**RUNNING))
    kubeconfig = server.kubeconfig(tmp_path)
    return lambda *options: dtjob(
        *(options if options[0] in ("get", "ls") else ("list", *options)), "--kubeconfig", kubeconfig
    )


def test_columns_are_aligned_and_end_without_spaces() -> None:
    assert list(table([job(**RUNNING), job()], Form(with_namespace=True), NOW)) == [
        "NAMESPACE   NAME     PHASE     READY   STEP      ETA   RESTARTS   REASON            AGE",
        "team        digits   Running   3/3     251/690   46s   2          AllTasksRunning   2h",
        "team        digits   Pending                           0                            2h",
    ]


def test_the_namespace_is_a_column_only_where_there_are_several() -> None:
    assert next(iter(table([], Form(), NOW))).startswith("NAME ")


def test_the_wide_table_has_more_columns() -> None:
    status = {**RUNNING, "workers": {"replicas": 3}, "goodput": {"percentage": 94}}
    head, row, empty = table([job(**status), job()], Form(wide=True), NOW)
    assert head.split()[-4:] == ["STRATEGY", "WORKERS", "CHECKPOINT", "GOODPUT"]
    assert row.split()[-4:] == ["MultiWorkerMirrored", "3", "200", "94%"]
    assert empty.split()[-1] == "MultiWorkerMirrored"


def test_names_are_those_that_kubectl_takes(listed: Any) -> None:
    line = "distributedtrainingjob.training.dtjob.dev/digits\n"
    assert listed("-o", "name") == (0, line * 2, "")


def test_json_and_yaml_are_a_list_or_the_one_job_that_was_named(listed: Any) -> None:
    for form, parsed in (("json", json.loads), ("yaml", yaml.safe_load)):
        found = parsed(listed("-o", form)[1])
        assert (found["kind"], len(found["items"])) == ("List", 2)
        assert parsed(listed("get", "digits", "-o", form)[1]) == job(**RUNNING)


def test_labels_choose_jobs(listed: Any, server: ApiServer) -> None:
    assert listed("ls", "-l", "team=vision")[0] == 0
    assert "labelSelector=team%3Dvision" in server.asked[-1][1]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("digits", "-l", "a=b"), "list: names of jobs go without --all-namespaces, --selector and --watch"),
        (("-w", "-o", "json"), "--watch: it prints a table, so it goes without -o json"),
    ],
)
def test_options_that_do_not_fit_together_are_refused(listed: Any, options: tuple[str, ...], said: str) -> None:
    assert listed(*options) == (2, "", f"dtjob: {said}\n")


def test_a_watch_prints_the_table_and_each_change_after_it(server: ApiServer, cluster: Cluster) -> None:
    first = {"items": [versioned("1", "a"), versioned("2", "b")], "metadata": {"resourceVersion": "2"}}
    server.answer(f"GET {JOBS}", first)
    server.answer(f"WATCH {JOBS}", [{"type": "MODIFIED", "object": versioned("3", "a", phase="Running")}])
    lines = list(itertools.islice(watched(cluster, Form()), 4))
    seen = [["NAME", "PHASE"], ["a", "Pending"], ["b", "Pending"], ["a", "Running"]]
    assert [line.split()[:2] for line in lines] == seen


def test_each_event_is_a_line() -> None:
    started = event("digits", "2026-11-23T11:58:00Z", "DistributedTrainingJob", "u", message="started")
    pulled = event("digits-worker-0-1", "2026-11-23T11:59:00Z", message="pulled\n image", count=3)
    assert list(event_table([started, pulled], NOW)) == [
        "AGE       TYPE     REASON   OBJECT                  MESSAGE",
        "2m        Normal   R        job/digits              started",
        "1m (x3)   Normal   R        pod/digits-worker-0-1   pulled image",
    ]
