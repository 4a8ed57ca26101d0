# SPDX-License-Identifier: Apache-2.0
"""What users do to jobs."""

import threading

from tests.chaos.support.bed import JOBS
from tests.chaos.support.hazards.hazard import Done, World
from tests.chaos.support.patience import patiently
from tools.cluster.rest import ApiError

ENDED = ("Succeeded", "Failed")


def job_suspended(world: World) -> Done | None:
    """`spec.suspend` is true, and false later: its pods save and end, and the job goes on."""
    jobs = world.sightings.jobs
    names = sorted(name for name, job in jobs.items() if job.get("status", {}).get("phase") not in ENDED)
    if not names:
        return None
    name = world.chance.choice(names)

    def suspend(value: bool) -> None:
        try:
            world.bed.api.patch("dtjobs", JOBS, name, {"spec": {"suspend": value}})
        except ApiError as error:
            if error.status != 404:  # it has ended meanwhile, and is deleted
                raise

    suspend(True)
    # A thread of its own: the API server may be away, and the thread that undoes hazards brings it back.
    resume = threading.Thread(target=lambda: patiently(lambda: suspend(False)), name=f"resume {name}", daemon=True)
    return Done(name, resume.start, world.chance.choice((1, 10, 60)))
