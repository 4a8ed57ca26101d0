# SPDX-License-Identifier: Apache-2.0
"""What is kept of an object. That it is enough is shown by every test whose pods come out of a store: `guarded.py`."""

import json
import tracemalloc
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from dtjob.api.job import Job
from dtjob.controller.stored_fields import LAST_APPLIED, kept
from dtjob.objects import labels
from dtjob.objects.drift import SAID, drifted
from dtjob.objects.manifest import Manifest
from dtjob.objects.shared import shared_objects
from dtjob.plan.actions import Create
from dtjob.plan.seen.children import Children
from tests.unit.operator import builders
from tests.unit.operator.plan.test_plan_properties import observed
from tests.unit.operator.simulation.guarded import guarded
from tests.unit.operator.simulation.operator import job_manifest


def as_an_api_server_gives_it(task_id: str = "worker-0") -> Manifest:
    """A running pod with all that kubelet, scheduler and API server add."""
    pod = builders.pod(builders.job(), task_id, builders.running())
    pod["metadata"] |= {
        "annotations": {"seen-by": "somebody"},
        "managedFields": [{"manager": "kubelet", "fieldsV1": {f"f:{number}": {} for number in range(200)}}],
    }
    pod["status"] |= {
        "podIP": "10.0.0.7",
        "qosClass": "Burstable",
        "conditions": [
            {"type": kind, "status": "True", "lastTransitionTime": "2026-11-21T10:00:00Z", "lastProbeTime": None}
            for kind in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        ],
    }
    return json.loads(json.dumps(pod))  # type: ignore[no-any-return]


def test_reducing_a_reduced_pod_changes_nothing():
    once = kept(as_an_api_server_gives_it())
    assert kept(once) == once


def test_the_object_itself_stays_as_it_was():
    pod = as_an_api_server_gives_it()
    before = json.dumps(pod)
    kept(pod)
    assert json.dumps(pod) == before


@pytest.mark.parametrize("status", [None, {}, {"conditions": None, "containerStatuses": None}])
def test_a_pod_that_says_little_is_kept_too(status: dict[str, Any] | None):
    pod = {**as_an_api_server_gives_it(), "status": status}
    assert kept(pod)["status"] == status


def test_a_pod_takes_no_more_than_5_kb():
    texts = [json.dumps(as_an_api_server_gives_it(f"worker-{number}")) for number in range(20)]
    kept(json.loads(texts[0]))
    tracemalloc.start()
    held = [kept(json.loads(text)) for text in texts]
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(held) == 20
    assert size / 20 < 5000


def test_a_job_is_kept_but_for_the_copies_of_itself():
    job = job_manifest(builders.job())
    job["metadata"] |= {"managedFields": [{"manager": "kubectl"}], "annotations": {LAST_APPLIED: "{}", "mine": "x"}}
    found = kept(job)
    assert found["spec"] == job["spec"]
    assert found["metadata"]["annotations"] == {"mine": "x"}
    assert "managedFields" not in found["metadata"]
    assert Job.model_validate(found) == Job.model_validate({**job, "metadata": found["metadata"]})


@pytest.mark.parametrize("made", shared_objects(builders.job()), ids=lambda one: one["kind"])
def test_only_what_drift_compares_is_kept_of_a_shared_object(made: Manifest):
    there = json.loads(json.dumps(made))
    there["metadata"] |= {"managedFields": [{"manager": "x" * 1000}], "annotations": {"a": "b" * 1000}, "uid": "a"}
    before = deepcopy(there)
    found = kept(there)
    assert there == before
    assert kept(found) == found
    assert drifted(made, found) == ""
    assert labels.controller_uid(found) == builders.JOB_UID
    assert set(found) == {"apiVersion", "kind", "metadata", SAID}
    assert len(str(found)) < 1300


@settings(max_examples=20, deadline=None, derandomize=True, phases=(Phase.generate, Phase.shrink))
@given(observed(), st.integers(0, 3600))
def test_a_plan_is_the_same_on_what_is_kept(seen: tuple[Job, Children], seconds: int) -> None:
    job, children = seen
    less = replace(children, objects=tuple(guarded(one) for one in children.objects))
    now = builders.at(seconds)
    assert builders.asked(job, less, now) == builders.asked(job, children, now)
    made, wanted = builders.plan_answered(job, less, now), builders.plan_answered(job, children, now)
    assert made == wanted
    for one, other in zip(made.actions, wanted.actions, strict=True):
        if isinstance(one, Create) and isinstance(other, Create):
            assert one.manifest == other.manifest


def test_a_field_that_is_read_and_not_kept_fails():
    pod = guarded(as_an_api_server_gives_it())
    with pytest.raises(
        AssertionError, match=r"Pod\.spec\.volumes is read, and controller/stored_fields\.py does not keep it"
    ):
        pod["spec"].get("volumes")
    with pytest.raises(AssertionError, match=r"Pod\.metadata\.annotations"):
        assert "annotations" in pod["metadata"]


def test_only_fields_of_children_are_removed():
    assert kept({"kind": "Lease", "metadata": {}, "spec": {"a": 1}})["spec"] == {"a": 1}
