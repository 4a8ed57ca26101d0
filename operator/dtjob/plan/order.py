# SPDX-License-Identifier: Apache-2.0
"""Order: in which order the status of a plan is written and its calls are made.

A status is written before any action, so that a crash in between only repeats what is safe to repeat. There are two
exceptions:

- A new job waits for its pods. Nothing has happened yet that a status would have to remember.
- Pods of a job start one after another, and end so. If each of them were written, a job of four pods would be written
  twice as often as anything happens to it. A count that is a second old misleads nobody.
"""

from enum import Enum

from dtjob.api.job import Job
from dtjob.api.phase import Phase
from dtjob.api.spec.replica_specs import Role
from dtjob.api.status.status import Status
from dtjob.plan.actions import Create, Delete, Plan
from dtjob.plan.seen.children import Children

MOST_BEFORE_A_WORD = 8
"""Objects that a new job is given before its first status. These are three shared ones and the pods of a small job, in
three or four rounds of calls."""
_FIRST_WORDS = "observedGeneration phase reason message conditions ready startTime active workers"
_FIRST_COUNTS = "replicaStatuses restarts internal"
SAID_AGAIN = frozenset(f"{_FIRST_WORDS} {_FIRST_COUNTS}".split())
"""Fields of a first status that the next plan can compute again from the spec and the pods. The default image is not
one of them. `_begins` leaves out elastic jobs, whose first size cannot be computed again."""


class Order(Enum):
    """What is done first."""

    MAKE = "make objects, and say it at the next look"
    WRITE = "write the status, if there is one, and then act"
    CHECK = "see that the job has not changed, and then act"
    LATER = "leave the status to a later look"


def order_of(
    job: Job, children: Children, decided: Plan, *, creates: bool, failed: bool = False, may_wait: bool = False
) -> Order:
    """The order for the plan `decided`.

    - creates: whether the plan makes a new object now, and not only later
    - failed: whether the last look at this job failed
    - may_wait: whether the status may be left to a later look
    """
    if creates and not failed and _begins(job, children, decided):
        return Order.MAKE
    if decided.status is not None:
        return Order.LATER if may_wait else Order.WRITE
    # A look at an old version could make a pod that a newer leader has replaced, or delete one that the job needs by
    # now. To write a status shows that too.
    surplus = any(isinstance(one, Delete) and one.surplus for one in decided.actions)
    return Order.CHECK if creates or surplus else Order.WRITE


def _begins(job: Job, children: Children, decided: Plan) -> bool:
    """Whether the job is new and needs only a few objects. Then nothing has to be remembered before they are made. If
    the operator dies before it has written a status, the next one finds them. It goes on as if it were the first to
    look."""
    new = not (job.status.get("phase") or children.objects or children.problems or decided.events)
    if not new or decided.status is None or not decided.status.keys() <= SAID_AGAIN or job.spec.elastic_policy:
        return False
    if not decided.status.get("internal", {}).keys() <= {"allCreated"}:
        return False
    makes = [one for one in decided.actions if isinstance(one, Create)]
    return 0 < len(makes) == len(decided.actions) <= MOST_BEFORE_A_WORD


def only_counts(status: Status, written: Status, slow_start: str = "") -> bool:
    """Whether the two differ only in how many tasks are made, up or done. Of a first status: whether it only says that
    pods are waited for, or that one is slow to start (`slow_start`: in these words).

    All of that can be read from the pods again: an operator that begins anew before it is written finds the same. A
    finished task is an exception. Its pod may be deleted at any moment. Only the status then shows that it has
    finished. Without that, it would be made again, and training with it."""
    done = (id_ for id_, attempt in status.internal.finished.items() if written.internal.finished.get(id_) != attempt)
    if any(not status.ended or id_.startswith(Role.EVALUATOR.value) for id_ in done):  # it would need another pod
        return False
    if written.phase is None:
        return status.phase is Phase.PENDING and status.message in ("", slow_start)
    counts = {name: getattr(written, name) for name in ("ready", "replica_statuses")}
    remembered = {name: getattr(written.internal, name) for name in ("finished", "all_created", "made_before")}
    return status != written and status.but(**counts).remembering(**remembered) == written
