# SPDX-License-Identifier: Apache-2.0
"""A Workload whose label somebody took away gets it back, and is found again. (Pods: test_look.py.)"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, cast

from dtjob.controller.cluster import AlreadyExists, Cluster, JobKey
from dtjob.controller.creation import Creation
from dtjob.controller.pace.slots import Slots
from dtjob.controller.pace.workqueue import WorkQueue
from dtjob.controller.store import Store
from dtjob.objects import kueue, labels
from dtjob.objects.defaults import NO_DEFAULTS
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Create
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW
from tests.unit.operator.queued import queued_job
from tests.unit.operator.simulation.operator import job_manifest

KEY: JobKey = ("default", "digits")


class HasIt:
    """Has the Workload, which bears no label."""

    def __init__(self, found: Manifest) -> None:
        self.found = found

    async def create(self, manifest: Manifest) -> Manifest:
        raise AlreadyExists(deepcopy(self.found))

    async def patch_workload(self, namespace: str, action: Any) -> Manifest:
        self.found = deepcopy(self.found)
        self.found["metadata"]["resourceVersion"] = str(int(self.found["metadata"]["resourceVersion"]) + 1)
        self.found["metadata"].setdefault("labels", {}).update(action.body.get("metadata", {}).get("labels", {}))
        return deepcopy(self.found)


async def test_a_workload_that_the_watch_lost_with_its_label_is_known_again() -> None:
    store: Store = Store()
    store.apply({**job_manifest(queued_job()), "status": {}})
    wanted = kueue.workload(queued_job(), NO_DEFAULTS, None)
    before = builders.stored(wanted)
    before["metadata"] |= {"uid": "w", "resourceVersion": "40"}
    store.apply(before)
    # A watch by label shows it as deleted: as it was before, in the version that it has without the label.
    shown = deepcopy(before)
    shown["metadata"]["resourceVersion"] = "41"
    assert store.remove(shown) == KEY
    unlabelled = deepcopy(shown)
    unlabelled["metadata"]["labels"] = {}

    cluster = HasIt(unlabelled)
    creation = Creation(cast(Cluster, cluster), store, WorkQueue(), Slots(), lambda: NOW)
    await creation.make(KEY, builders.JOB_UID, [Create.of(wanted)])
    assert [one["metadata"]["uid"] for one in store.children(KEY).objects if one["kind"] == kueue.KIND] == ["w"]
    assert labels.of(cluster.found)[labels.JOB_NAME] == "digits"
