# SPDX-License-Identifier: Apache-2.0
"""Programs with a mistake in them, and supervisors that tell of it."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.phase import ENDED
from dtjob.objects import topology
from dtjob.plan.seen.children import LOST_AFTER
from tests.unit.operator import builders
from tests.unit.operator.simulation.facts import attempt_of
from tests.unit.operator.simulation.life.budgets import Budgets
from tests.unit.operator.simulation.life.supervisors import Supervisors

EXCEPTIONS = ("ModuleNotFoundError: No module named 'foo'", "KeyError: 'bar'", "")


class Programs(Budgets, Supervisors):
    """Failures whose kind, exception and time a supervisor tells."""

    def supervised(self) -> list[str]:
        """Pods of training tasks that have our supervisor and have not ended."""
        facts = {name: self.facts(name) for name in self.answering()}
        return [name for name, one in facts.items() if one.supervised and one.task != "evaluator-0"]

    @precondition(lambda self: self.supervised())
    @rule(
        data=st.data(),
        code=st.sampled_from((1, 1, 3, 76)),
        exception=st.sampled_from(EXCEPTIONS),
        stepped=st.sampled_from((False, False, False, True, None)),
        kind=st.sampled_from(("", "", "", "transient", "exhausted", "permanent", "trained")),
    )
    def program_fails(self, data: st.DataObject, code: int, exception: str, stepped: bool | None, kind: str) -> None:
        name = data.draw(st.sampled_from(self.supervised()))
        self.let_fail(name, code, exception, stepped=stepped, kind=kind)

    @precondition(lambda self: self.supervised())
    @rule(data=st.data(), other=st.booleans())
    def training_stalls(self, data: st.DataObject, other: bool) -> None:
        """A supervisor ends its container over that, and may name another task, whose own is silent."""
        name = data.draw(st.sampled_from(self.supervised()))
        of_the_job = [one for one in self.supervised() if self.facts(one).job_uid == self.facts(name).job_uid]
        behind = data.draw(st.sampled_from(of_the_job)) if other else name
        self.blame(name, "Stalled")
        self.set_status(name, builders.stalled(self.facts(behind).task, when=self.world.node_time()))

    @precondition(lambda self: self.supervised())
    @rule(data=st.data(), lost=st.booleans())
    def falls_silent(self, data: st.DataObject, lost: bool) -> None:
        """A task's supervisor is heard no more, and the chief's says so; it may never tell that to this operator. That
        its node is lost shows only later."""
        name = data.draw(st.sampled_from(self.supervised()))
        facts = self.facts(name)
        if not self.goes_on(facts.job_name) or self.uid(facts.job_name) != facts.job_uid:
            return
        job = self.world.job_named(facts.job_name)
        chief = topology.chief_task(job).id
        if facts.task == chief or "running" not in str(self.world.pods[name].get("status")):
            return
        accounts = self.world.cluster.rules.accounts
        if lost:
            self.world.cluster.lost.add(self.world.pods[name]["metadata"]["uid"])
            accounts.unseen.add(facts.job_uid)
        else:
            self.blame(name, None)
        told = {"task": chief, "attempt": attempt_of(job.status, chief), "jobUid": facts.job_uid, "state": "waiting"}
        told["silent"] = {facts.task: facts.attempt}
        key = (job.metadata.namespace, job.metadata.name)
        if self.world.store.job(key) is not None and self.world.store.set_report(key, chief, told):
            self.world.queue.add(key)
        if lost:
            grace = self.world.pods[name]["spec"].get("terminationGracePeriodSeconds", 30)
            self.world.run(1)
            if name in self.pods() and "deletionTimestamp" not in self.world.pods[name]["metadata"]:
                self.drain(name)
            self.world.run(grace + LOST_AFTER.total_seconds() + 5)  # of a pod that is deleted, it shows only then
            if self.goes_on(facts.job_name) and self.uid(facts.job_name) == facts.job_uid:
                accounts.unseen.discard(facts.job_uid)

    def let_fail(self, name: str, code: int, exception: str, *, stepped: bool | None = False, kind: str = "") -> None:
        """The training process in this pod fails, and its supervisor tells so, and what is true of the failure: `kind`
        is one of the flags of contract.md, or empty."""
        self.blame(name, "Error")
        accounts, uid = self.world.cluster.rules.accounts, self.facts(name).job_uid
        if kind == "permanent" or (kind == "trained" and exception):
            accounts.permanent.add((uid, name))
        may_be_the_programs = exception and kind != "exhausted" if stepped is not False else code != 76
        if kind != "transient" and may_be_the_programs:
            accounts.mistakes.setdefault(uid, {})[name] = f"{code} {exception}"
        more = {kind: True} if kind else {}
        self.set_status(name, builders.failed(code, exception, self.world.node_time(), stepped=stepped, **more))

    def fail_for_good(self, name: str) -> None:
        """Another task fails first, and then its chief in a way that no restart repairs: the job ends at once."""
        policy = self.world.job_named(name).spec.failure_policy
        if self.world.job_named(name).spec.program is None or policy.rules:
            return
        chief = self.chief_of(name)
        if others := [pod for pod in self.supervised() if pod != chief and self.facts(pod).job_uid == self.uid(name)]:
            self.set_status(others[0], builders.disrupted("PreemptionByScheduler", self.world.node_time()))
            self.world.run(3)
        if (chief := self.chief_of(name)) and self.goes_on(name):
            self.let_fail(chief, 1, EXCEPTIONS[1], stepped=True, kind="permanent")
            self.world.run(5)
            status = self.status(name)
            assert (status.get("phase"), status.get("reason")) == ("Failed", "ProgramFailed")

    def fail_alike(self, name: str) -> None:
        """Its chief fails, and then twice in another way: no more is needed. Where the job had done a step before, it
        fails without an exception, and that does not count. A supervisor tells of it."""
        if self.world.job_named(name).spec.program is None:
            return
        stepped = "firstStepTime" in self.status(name)
        last = "" if stepped else EXCEPTIONS[0]
        for code, exception in ((2, EXCEPTIONS[1]), (3, last), (3, last)):
            status = self.status(name)
            assert status.get("reason") != "ProgramFailed", "no two failures were alike"
            if (chief := self.chief_of(name)) and self.goes_on(name):
                self.let_fail(chief, code, exception)
            self.world.run(3)
            self.world.run(self.longest_wait())
            self.all_run()
            self.world.run(1)
        status = self.status(name)
        if stepped:
            assert status.get("reason") != "ProgramFailed", "it had done a step, and an exit code failed it"
        else:
            assert status.get("phase") in ENDED, f"{status.get('phase')} after two failures alike before a first step"

    def fail_after_a_step(self, name: str) -> None:
        """The same after its supervisors have told of steps."""
        self.ask("", {}, 10, False)
        self.world.run(1)
        self.fail_alike(name)
