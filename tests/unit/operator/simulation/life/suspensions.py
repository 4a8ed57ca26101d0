# SPDX-License-Identifier: Apache-2.0
"""Jobs are suspended and go on: by their users, or by a queue such as Kueue's."""

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from dtjob.api.job import KIND
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from tests.unit.operator.simulation.life.outsiders import Outsiders


class Suspensions(Outsiders):
    """`spec.suspend` is changed at any moment."""

    @precondition(lambda self: self.names)
    @rule(data=st.data(), flips=st.integers(1, 3))
    def is_suspended_or_goes_on(self, data: st.DataObject, flips: int) -> None:
        """Or both at once, of which the operator may see the last only."""
        name = data.draw(st.sampled_from(self.names))
        for _ in range(flips):
            self.set_suspend(name, not self.world.job_named(name).spec.suspend)

    @precondition(lambda self: self.names)
    @rule(data=st.data(), saves=st.sampled_from((0.015, 1.0, 60.0)), stays=st.sampled_from((0.015, 1.0, 60.0)))
    def is_suspended_for_a_while(self, data: st.DataObject, saves: float, stays: float) -> None:
        """Its pods may still save when it goes on."""
        name = data.draw(st.sampled_from(self.names))
        self.set_suspend(name, True)
        self.world.run(saves)
        if data.draw(st.booleans()):
            self.kubelets_end_what_is_deleted()
        self.world.run(stays)
        if name in self.names:
            self.set_suspend(name, False)

    def set_suspend(self, name: str, suspend: bool) -> None:
        """kubectl patch dtjob NAME, or Kueue."""

        def change(job: Manifest) -> None:
            job["spec"]["suspend"] = suspend
            job["metadata"]["generation"] += 1

        if self.world.job_named(name).spec.suspend != suspend:
            self.world.cluster.change(KIND, name, change)

    def all_go_on(self) -> None:
        """No job is suspended any more."""
        for name in self.names:
            self.set_suspend(name, False)

    def _is_about(self, called: str, job: str) -> bool:
        """Whether the object of this name is the job's. The pods of `digits` may begin as those of `digits-chief`."""
        made = {pod: one for one in self.names for pod in self.world.cluster.facts.names(one).values()}
        named = max((one for one in self.names if one in called), key=len, default="")
        return made.get(called, named) == job

    def be_suspended(self, name: str) -> None:
        """It has no pods soon, asks for nothing, and goes on at once."""
        cluster, before = self.world.cluster, self.status(name)
        self.set_suspend(name, True)
        self.world.run(1)
        self.kubelets_end_what_is_deleted()
        self.world.run(1)
        uid, status = self.uid(name), self.status(name)
        assert status["phase"] == "Suspended"
        assert status.get("restarts") == before.get("restarts")
        assert not self.pods(lambda one: labels.controller_uid(one) == uid), "a suspended job has pods"
        calls = len(cluster.calls)
        self.world.run(3600)
        others = [one for one in cluster.calls[calls:] if self._is_about(one.split()[-1], name)]
        assert not others, f"a suspended job asks for {others}"
        self.set_suspend(name, False)
        self.world.run(self.longest_wait())
        self.all_run()
        self.world.run(1)
        assert self.status(name)["phase"] == "Running"
