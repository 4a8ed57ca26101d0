# SPDX-License-Identifier: Apache-2.0
"""What each job has done itself, and whether its status charges it with that and no more."""

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from dtjob.api.job import Job
from dtjob.api.status.internal import Incident
from dtjob.api.status.status import Status
from dtjob.objects.manifest import Manifest
from dtjob.plan.seen.children import Children, ended
from tests.unit.operator.simulation.facts import Facts, told_to_end

UNCHARGED = ("Disruption", "Deleted", "NotStarted")
GOOD_WHILE = timedelta(minutes=10)
"""After so long without an incident the next one waits for nothing."""


class Accounts:
    """The truth about failures, as the tests that cause them know it, held against what statuses say."""

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        """Failures that were the job's own doing, by job uid."""
        self.charged: Counter[str] = Counter()
        """Charges less what was given back, by job uid."""
        self.unseen: set[str] = set()
        """Jobs with a pod whose peers have failed for its sake and of which nothing shows yet."""
        self.causes: dict[str, str] = {}
        """What pods really died of, by pod uid, where the job did it itself."""
        self.seen_alive: dict[str, set[str]] = {}
        """Uids of the pods that the last plan of a job saw, and that had not ended then, by job uid."""
        self.mistakes: dict[str, dict[str, str]] = {}
        """What programs failed with before their first step, by job uid and pod, where it may be their own fault."""
        self.permanent: set[tuple[str, str]] = set()
        """Job uid and pod of failures that no restart repairs."""

    def note_plan(self, job: Job, children: Children) -> None:
        """The operator has made a plan of this."""
        seen = children.owned_pods(job)
        self.seen_alive[job.metadata.uid] = {one["metadata"]["uid"] for one in seen if not ended(one)}

    def check(
        self,
        job: Job,
        old: dict[str, Any],
        new: dict[str, Any],
        pods: Iterable[tuple[Manifest, Facts]],
        strict: bool,
    ) -> None:
        """Raises AssertionError where the status `new` is unjust. `pods` are the job's.

        `strict`: whoever lets a job fail says whose doing it is (`own` and the others).
        """
        uid, policy = job.metadata.uid, job.spec.failure_policy
        before, after = (Status.read(one).internal.incident for one in (old, new))
        charged = [one.charged if one else 0 for one in (before, after)]
        assert charged[1] <= max(policy.max_restarts_without_progress, charged[0]), (
            f"{charged[1]} charged of {policy.max_restarts_without_progress}"
        )
        if charged[1] >= charged[0] or not _refilled(before, after):
            self.charged[uid] += charged[1] - charged[0]
        if not strict:
            return
        if uid not in self.unseen:
            self.check_charges(uid, new)
        if new.get("reason") == "MaxRestartsExceeded":
            last = new["lastFailure"]  # a rule may charge what its job calls a failure, such as OOMKilled in a drain
            assert last["cause"] not in UNCHARGED or last.get("rule"), "a disruption failed the job"
        if new.get("lastFailure") != old.get("lastFailure"):
            self._check_cause(uid, new["lastFailure"], pods)
        self._check_program(uid, old, new)
        if before and after and before.started_at < after.started_at:
            _check_wait(job, before, after)

    def check_charges(self, uid: str, status: dict[str, Any]) -> None:
        """Charged is only what the job did itself, and only that makes it fail."""
        assert self.charged[uid] <= self.own[uid], f"{self.charged[uid]} charges for {self.own[uid]} failures"
        assert self.own[uid] or status.get("reason") != "MaxRestartsExceeded", "failed without a failure of its own"

    def _check_program(self, uid: str, old: dict[str, Any], new: dict[str, Any]) -> None:
        """Only two failures alike, or one that no restart repairs, end a job as its program's own. After a first step
        only an exception counts so."""
        since = old.get("firstStepTime")
        assert since in (None, new.get("firstStepTime")), "a first step is forgotten"
        if new.get("reason") == "ProgramFailed":
            first, mistakes = new["lastFailure"]["pod"], self.mistakes.get(uid, {})
            if (uid, first) in self.permanent:
                return
            alike = [pod for pod, mistake in mistakes.items() if mistake == mistakes.get(first)]
            without_exception = str(mistakes.get(first)).endswith(" ")
            assert since is None or not without_exception, "failed for an exit code after its first step"
            assert first in alike, f"{first} failed the job with {mistakes}"
            assert len(alike) > 1, f"{first} failed the job the first time"

    def _check_cause(self, uid: str, first: dict[str, Any], pods: Iterable[tuple[Manifest, Facts]]) -> None:
        """The first failure has the cause that its pod really died of, if nobody had told the pod to end. What fails
        while it is alive, such as a pod that cannot start, may die before that is written."""
        pod = next((one for one, _ in pods if one["metadata"]["name"] == first.get("pod")), None)
        if pod is None or pod["metadata"]["uid"] in self.seen_alive.get(uid, ()):
            return
        cause = self.causes.get(pod["metadata"]["uid"])
        if cause is not None and not told_to_end(pod):
            assert first["cause"] == cause, f"{first['pod']} died of {cause}, not of {first['cause']}"


def _refilled(before: Incident | None, after: Incident | None) -> bool:
    """Whether a newer checkpoint has given the whole budget back."""
    return before is None or after is None or after.checkpoint_step > before.checkpoint_step


def _check_wait(job: Job, before: Incident, after: Incident) -> None:
    """A wait is twice the last one, within the bounds of the job's backoff, unless the budget was refilled."""
    backoff = job.spec.failure_policy.backoff
    if after.checkpoint_step > before.checkpoint_step or after.started_at - before.not_before >= GOOD_WHILE:
        return
    waited, waits = before.not_before - before.started_at, after.not_before - after.started_at
    least = min(max(2 * waited.total_seconds(), backoff.initial_seconds), backoff.max_seconds)
    assert waits.total_seconds() >= least, f"waits {waits} after a wait of {waited}"
