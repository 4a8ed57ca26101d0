# SPDX-License-Identifier: Apache-2.0
"""What is remembered of a job goes with it, and is never another's."""

from __future__ import annotations

import pytest

from dtjob.controller.memory import Memory
from dtjob.controller.store import Store
from dtjob.objects.manifest import Manifest
from tests.unit.operator import builders
from tests.unit.operator.simulation.operator import job_manifest

KEY = ("default", "digits")


def job(uid: str, version: int) -> Manifest:
    made = job_manifest(builders.job(uid=uid))
    made["metadata"]["resourceVersion"] = str(version)
    return made


def remembering() -> Store:
    """A job of which something is remembered."""
    store = Store()
    store.apply(job("first", 10))
    store.set_report(KEY, "chief-0", {"step": 5})
    store.set_problem(KEY, "Pod/digits-chief-0-0", "quota")
    memory = store.memory(KEY)
    memory.made_for, memory.progress_refused = "first", "progress.step: no integer"
    memory.holds.refused("Pod/digits-chief-0-0", 0.0)
    return store


def test_an_event_of_the_job_itself_takes_nothing_away() -> None:
    store = remembering()
    store.apply(job("first", 11))
    assert store.memory(KEY).holds.holds("Pod/digits-chief-0-0", 1.0)
    assert store.children(KEY).reports == {"chief-0": {"step": 5}}


@pytest.mark.parametrize("how", ["it is deleted", "another has its name", "the reconciler forgets it"])
def test_the_memory_of_a_job_is_dropped_at_once(how: str) -> None:
    store = remembering()
    if how == "it is deleted":
        store.remove(job("first", 12))
    elif how == "another has its name":
        store.apply(job("second", 12))
    else:
        store.forget(KEY)
    assert store.memory(KEY) == Memory(holds=store.memory(KEY).holds, summary=store.memory(KEY).summary)
    assert store.memory(KEY).holds.next_try(0.0) is None
    assert store.memory(KEY).summary.events() == []


def test_questions_about_a_deleted_job_leave_no_memory_of_it() -> None:
    store = Store()
    store.forget_report(KEY, "chief-0")
    store.set_problem(KEY, "Pod/digits-chief-0-0", None)
    assert store.children(KEY).problems == {}
    assert store._memories == {}
