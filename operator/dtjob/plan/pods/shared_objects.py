# SPDX-License-Identifier: Apache-2.0
"""Shared objects: the job's Service, ConfigMap and NetworkPolicy exist and are as dtjob makes them."""

from __future__ import annotations

from dtjob.objects import drift, shared
from dtjob.plan.actions import Create, Repair
from dtjob.plan.seen.children import deleting
from dtjob.plan.seen.situation import Situation


def keep_shared(situation: Situation) -> list[Create | Repair]:
    """Create what is missing, and repair what somebody changed.

    An object that is being deleted is made again once it is gone. Fields that others added stay (`objects/drift.py`).
    """
    there = {
        (child["kind"], child["metadata"]["name"]): child
        for child in situation.children.owned(situation.group_job, drift.SHARED_KINDS)
    }
    # They come before the first pod, so that of a job with pods each of them was there.
    again = any(view.pods for view in situation.views)
    actions: list[Create | Repair] = []
    has_config_map = ("ConfigMap", shared.config_map_name(situation.group_job)) in there
    for wanted in shared.shared_objects(situation.group_job, situation.defaults.readers, has_config_map=has_config_map):
        found = there.get((wanted["kind"], wanted["metadata"]["name"]))
        if found is None:
            actions.append(Create.of(wanted, again=again))
        elif not deleting(found) and (field := drift.drifted(wanted, found)):
            actions.append(Repair(wanted, found, field))
    return actions
