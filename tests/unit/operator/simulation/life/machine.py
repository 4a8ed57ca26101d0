"""The whole machine."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from dtjob.api.job import Job
from tests.unit.operator.simulation.life.accidents import Accidents
from tests.unit.operator.simulation.life.endings import Ending, Endings
from tests.unit.operator.simulation.life.stage import jobs
from tests.unit.operator.simulation.life.supervisors import Supervisors
from tests.unit.operator.simulation.operator import World


class Life(Endings, Supervisors, Accidents):
    """The life of some jobs, under the guarantees `must`."""

    @initialize(job=jobs(), runs=st.integers(0, 3), ending=st.sampled_from(Ending))
    def begins(self, job: Job, runs: int, ending: Ending) -> None:
        """Most histories begin with a job that runs: that is where the most can go wrong."""
        self.world, self.ending = World(job, must=self.must), ending
        if runs:
            self.world.run(1)
            self.all_run()
            self.world.run(1)

    def teardown(self) -> None:
        if hasattr(self, "world"):
            try:
                self.converge()
            finally:
                self.world.close()
