# SPDX-License-Identifier: Apache-2.0
"""Ends that are about a job's budget of restarts, and about its rules."""

from datetime import timedelta

from dtjob.api.phase import ENDED, Phase
from dtjob.api.spec.failure_rules import FailureRule
from dtjob.api.status.status import Status
from dtjob.objects import topology
from tests.unit.operator import builders
from tests.unit.operator.simulation.facts import attempt_of
from tests.unit.operator.simulation.life.people import People
from tests.unit.operator.simulation.life.pods import beyond_its_limit
from tests.unit.operator.simulation.ruling import FAIL_2, UNCOUNTED_127

RULES_OF_FAIL_2, RULES_OF_UNCOUNTED = [FailureRule.model_validate(FAIL_2)], [FailureRule.model_validate(UNCOUNTED_127)]


class Budgets(People):
    """What their chiefs end with."""

    def lower_budget(self, name: str) -> None:
        """After a failure of its own; the preemption that follows costs nothing."""
        self.set_max_restarts(name, 4)
        if chief := self.chief_of(name):
            self.blame(chief, "Error")
            self.set_status(chief, builders.ended(1, self.world.node_time()))
        self.world.run(3)
        self.world.run(self.longest_wait())
        self.all_run()
        self.world.run(1)
        self.set_max_restarts(name, 0)
        self.disrupt_chief(name)

    def exceed_the_limit_again_and_again(self, name: str) -> None:
        """No budget lasts for ever."""
        job = self.world.job_named(name)
        self.world.run(60)  # what fails so soon after another may be of the same incident
        if self.chief_of(name) is None:
            return  # it has done its part
        for _ in range(job.spec.failure_policy.max_restarts_without_progress + 1):
            if chief := self.chief_of(name):
                self.blame(chief, None)
                self.set_status(chief, beyond_its_limit('Usage of EmptyDir volume "scratch" exceeds the limit "1Gi".'))
            self.world.run(1000)
            self.all_run()
            self.world.run(1000)
        phase = self.status(name).get("phase")
        assert phase in ENDED, (
            f"{name} is {phase} after {job.spec.failure_policy.max_restarts_without_progress + 1} failures of its own"
        )

    def fail_by_a_wrong_clock(self, name: str) -> None:
        """Twice, so that there is a backoff. The operator looks at a job that waits every five minutes at least."""
        self.world.ahead = timedelta(hours=1)
        self.disrupt_chief(name)
        if (chief := self.chief_of(name)) is None or not self.goes_on(name):
            return
        self.set_status(chief, builders.disrupted("PreemptionByScheduler", self.world.node_time()))
        self.world.run(3)
        self.world.ahead = timedelta(0)
        self.world.run(301 + self.world.job_named(name).spec.failure_policy.backoff.max_seconds)
        assert self.chief_of(name) not in (None, chief), f"{chief} has no successor: {self.status(name)}"

    def fail_by_rule(self, name: str) -> None:
        """Whatever is left of its budget."""
        chief = self.chief_of(name)
        if chief is None or self.world.job_named(name).spec.failure_policy.rules[:1] != RULES_OF_FAIL_2:
            return
        self.blame(chief, "Error")
        self.set_status(chief, builders.ended(2, self.world.node_time()))
        # Of a group without supervisors another may be the cause, and is waited for, by clocks that may be 20 s ahead.
        self.world.run(100)
        if self.status(name).get("phase") == Phase.SUSPENDED:
            return  # its queue took it back in that look: nothing that failed is judged, and the rule waits
        assert self.status(name).get("reason") == "PodFailurePolicy"

    def fail_uncounted(self, name: str) -> None:
        """More often than maxRestartsWithoutProgress allows."""
        policy = self.world.job_named(name).spec.failure_policy
        if policy.rules[:1] != RULES_OF_UNCOUNTED:
            return
        before = self.charged(name)
        for _ in range(policy.max_restarts_without_progress + 1):
            if chief := self.chief_of(name):
                self.blame(chief, "Error")
                self.set_status(chief, builders.ended(127, self.world.node_time()))
            self.world.run(1000)
            self.all_run()
            self.world.run(2)
        assert self.goes_on(name)
        assert self.charged(name) <= before

    def charged(self, name: str) -> int:
        """How many incidents are held against the job now."""
        incident = Status.read(self.status(name)).internal.incident
        return incident.charged if incident else 0

    def chief_of(self, name: str) -> str | None:
        """The chief's running pod, None where it has finished or has none."""
        job = self.world.job_named(name)
        chief = topology.chief_task(job).id
        pod = f"{name}-{chief}-{attempt_of(job.status, chief)}"
        return pod if pod in self.answering() else None
