# SPDX-License-Identifier: Apache-2.0
"""Image: if neither the job nor the operator names an image, the job waits for one."""

from __future__ import annotations

from dtjob.api.phase import Phase
from dtjob.objects.defaults import IMAGE_MISSING, MISSING_IMAGE_MESSAGE, image_of
from dtjob.plan.draft import Draft
from dtjob.plan.lifetime.deadlines import deadline_changes_at
from dtjob.plan.record.conditions import BLOCKED
from dtjob.plan.record.status import set_condition, set_phase
from dtjob.plan.seen.children import count_tasks


def keep_image(draft: Draft) -> None:
    """Keep in the status which default image the job began with."""
    job = draft.situation.group_job
    if job.spec.image is None and (image := image_of(job, draft.situation.defaults)):
        draft.status = draft.status.but(image=image)


def wait_for_image(draft: Draft) -> None:
    """Start nothing, and say which field to write. An operator with a default image goes on from here."""
    views, now = draft.situation.views, draft.now
    if draft.status.reason != IMAGE_MISSING:
        draft.add_event("Warning", IMAGE_MISSING, MISSING_IMAGE_MESSAGE)
    status = set_phase(draft.status, Phase.PENDING, IMAGE_MISSING, MISSING_IMAGE_MESSAGE, now)
    status = set_condition(status, BLOCKED, True, IMAGE_MISSING, MISSING_IMAGE_MESSAGE, now)
    draft.look_again(deadline_changes_at(draft.situation))
    draft.status = count_tasks(status, views).but(ready=f"0/{len(views)}")
