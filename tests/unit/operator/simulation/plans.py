# SPDX-License-Identifier: Apache-2.0
"""What must hold of every single plan, given what the operator had seen at its plans before."""

from collections.abc import Mapping
from typing import Any

from dtjob.api.job import Job
from dtjob.api.phase import ENDED
from dtjob.api.status.status import Status
from dtjob.objects import topology
from dtjob.objects.manifest import Manifest
from dtjob.plan.actions import Plan
from dtjob.plan.seen.children import Children, created_at, ended, ended_at
from tests.unit.operator.simulation.facts import Facts, attempt_of, has_finished, is_suspended, sized_job, told_to_end
from tests.unit.operator.simulation.ruling import check_rules

Finished = dict[str, tuple[int, int]]
"""By task the attempt that finished, and the attempt that the chief was at then."""


class PlanRules:
    """Remembers which tasks the operator has seen finish, and written a status after: it must not forget them."""

    def __init__(self, facts: Mapping[str, Facts], strict: bool) -> None:
        self._facts, self._strict = facts, strict
        self.finished: dict[str, Finished] = {}
        """What is known for good, by job uid."""
        self._seen: dict[str, Finished] = {}
        self._forged: dict[str, int] = {}
        """The version that somebody forged last, by job uid. A plan of an earlier one has not heard of that."""

    def is_forged(self, job: Manifest) -> None:
        """Somebody has changed the job's status. A finished task that it names no more is known by its pod alone."""
        uid, internal = job["metadata"]["uid"], Status.read(job["status"]).internal
        self._forged[uid] = int(job["metadata"]["resourceVersion"])
        known, said, attempts = self.finished.get(uid, {}), internal.finished, internal.attempts
        self.finished[uid] = {id_: one for id_, one in known.items() if one[0] == said.get(id_) == attempts.of(id_)}

    def check(self, job: Job, children: Children, made: Plan) -> None:
        """Raises AssertionError where this plan starts a finished task anew without need."""
        job, uid, chief = sized_job(job), job.metadata.uid, topology.chief_task(job).id
        before, after = job.status, made.status or job.status
        known = {**self.finished.get(uid, {}), **self._finished_in(children, job, chief)}
        if self._strict and before.get("phase") not in ENDED:
            ids = [task.id for task in topology.tasks(job)]
            decide = {chief} | {one for one in ids if job.spec.success_policy == "AllWorkers" and "worker" in one}
            assert decide - known.keys() or after.get("phase") in ENDED, "who decides has finished, and the job goes on"
            replaced = {id_ for id_ in ids if attempt_of(after, id_) > attempt_of(before, id_)}
            well = self._well(children, job)
            others = {id_ for id_ in replaced if id_ not in known and id_ not in well and id_ != "evaluator-0"}
            if is_suspended(before):  # all of its pods are given up, ended or not
                others |= replaced - known.keys()
            for id_ in replaced & known.keys():
                moved = attempt_of(before, chief) > known[id_][1]
                assert others or moved, f"{id_} had finished and is started anew"
        if self._strict:
            check_rules(job, children, before, after)
        self._seen[uid] = {id_: one for id_, one in known.items() if one[0] == attempt_of(after, id_)}
        heard = int(job.metadata.resource_version) >= self._forged.get(uid, 0)
        if made.status is None and heard:
            self.written(uid)

    def written(self, uid: str) -> None:
        """The status of the last plan was stored: what that plan saw is known from now on."""
        if uid in self._seen:
            self.finished[uid] = self._seen.pop(uid)

    def _well(self, children: Children, job: Job) -> set[str]:
        """The tasks whose pods have not ended, and that nobody has told to."""
        pods = [(one, self._facts.get(one["metadata"]["uid"])) for one in children.objects]
        alive = [facts for one, facts in pods if facts and not ended(one) and not told_to_end(one)]
        current = [one for one in alive if one.attempt == attempt_of(job.status, one.task)]
        return {one.task for one in current if one.job_uid == job.metadata.uid}

    def _finished_in(self, children: Children, job: Job, chief: str) -> Finished:
        found: Finished = {}
        for one in children.objects:
            facts = self._facts.get(one["metadata"]["uid"])
            if facts is None or facts.job_uid != job.metadata.uid or not has_finished(one, facts):
                continue
            if facts.attempt == attempt_of(job.status, facts.task):
                found[facts.task] = facts.attempt, self._chief_then(children, job, chief, one)
        return found

    def _chief_then(self, children: Children, job: Job, chief: str, finished: Manifest) -> int:
        """The attempt that the chief was at when this pod ended: not the one whose pod was made only after that."""
        attempt, ended_then = attempt_of(job.status, chief), ended_at(finished)
        pods = [(one, self._facts.get(one["metadata"]["uid"])) for one in children.objects]
        uid = job.metadata.uid
        own = [
            one for one, facts in pods if facts and (facts.job_uid, facts.task, facts.attempt) == (uid, chief, attempt)
        ]
        later = not own or (ended_then is not None and created_at(own[0]) >= ended_then)
        return attempt - 1 if later else attempt


def plan_arguments(*arguments: Any) -> tuple[Job, Children]:
    """The job and its children out of what `plan` was called with."""
    job, children = arguments[:2]
    assert isinstance(job, Job)
    assert isinstance(children, Children)
    return job, children
