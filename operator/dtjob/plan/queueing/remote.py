# SPDX-License-Identifier: Apache-2.0
"""A job that MultiKueue runs in another cluster: dtjob keeps only its Workload here.

Kueue makes the Workloads of the kinds that it knows. For other kinds, their own operator makes them, in the cluster
where the user makes the job. MultiKueue then copies the job and the Workload to a cluster with quota. The operator
there takes the Workload up (`kueue.PREBUILT`). MultiKueue copies the job's status back, so nobody else writes it here.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED
from dtjob.objects import kueue
from dtjob.objects.defaults import Defaults
from dtjob.plan.actions import Create, Plan
from dtjob.plan.kueue import slices_of
from dtjob.plan.queueing.lookups import priority
from dtjob.plan.queueing.waiting import while_it_waits
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.situation import Situation
from dtjob.plan.seen.workload import Kueue

CONTROLLER = "kueue.x-k8s.io/multikueue"
"""Of spec.managedBy."""


def runs_elsewhere(spec: Mapping[str, Any]) -> bool:
    """Whether MultiKueue has the job with this `spec`, as plain JSON."""
    return spec.get("managedBy") == CONTROLLER


def keep_workload(job: Job, children: Children, now: datetime, defaults: Defaults) -> Plan:
    """What to do about the Workload of a job that runs elsewhere; its status stays as it is."""
    queue = kueue.queue_of(job)
    if not runs_elsewhere({"managedBy": job.spec.managed_by}) or queue is None or children.kueue is not Kueue.THERE:
        return Plan()
    situation = Situation.of(job, children, now, defaults)
    workload = slices_of(situation).current
    if workload is None:
        if job.spec.suspend or situation.status.phase in ENDED:
            return Plan()
        chosen, _ = priority(situation)
        return Plan((Create.of(kueue.workload(situation.spec_job, defaults, chosen)),))
    if workload.is_going or workload.finished or workload.shape is None:
        return Plan()
    if job.spec.suspend:
        return Plan((workload.delete("the job is suspended (spec.suspend)"),))
    stale = workload.shape != kueue.shape_of(situation.spec_job)
    return Plan() if workload.in_force and not stale else Plan(while_it_waits(situation, workload, queue, stale))
