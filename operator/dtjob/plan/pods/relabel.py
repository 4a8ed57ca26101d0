# SPDX-License-Identifier: Apache-2.0
"""Labels of pods: one that somebody removed or changed is restored. Service, NetworkPolicy and watch select by them."""

from __future__ import annotations

from dtjob.objects import labels, topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Relabel
from dtjob.plan.draft import Draft
from dtjob.plan.seen.children import TaskView
from dtjob.plan.seen.pod_facts import facts_of


def restore_labels(draft: Draft) -> None:
    """Restore the labels that our pods have lost."""
    situation = draft.situation
    name, uid = situation.group_job.metadata.name, situation.group_job.metadata.uid
    draft.do(
        Relabel(pod["metadata"]["name"], pod["metadata"]["uid"], _lost(name, uid, view, pod))
        for view in situation.views
        for pod in view.pods
        if not (facts := facts_of(pod)).labelled or (pod is view.pod and facts.serves != uid)
    )


def _lost(name: str, uid: str, view: TaskView, pod: Manifest) -> dict[str, str]:
    wanted = {
        labels.JOB_NAME: name,
        labels.JOB_UID: uid,
        labels.ROLE: view.task.role.value,
        labels.INDEX: str(view.task.index),
        labels.ATTEMPT: str(topology.attempt_of(pod)),
    }
    if pod is view.pod:
        wanted[labels.SERVING] = uid
    found = labels.of(pod)
    return {label: value for label, value in wanted.items() if found.get(label) != value}
