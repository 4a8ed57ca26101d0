"""The whole machine."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from dtjob.api.job import Job
from tests.unit.operator.simulation.life.accidents import Accidents
from tests.unit.operator.simulation.life.endings import SUITED, Endings
from tests.unit.operator.simulation.life.stage import jobs
from tests.unit.operator.simulation.operator import World


class Life(Endings, Accidents):
    """The life of some jobs, under the guarantees `must`, and their `ending`."""

    @initialize(data=st.data(), job=jobs() | jobs(elastic=True), runs=st.integers(0, 3))
    def begins(self, data: st.DataObject, job: Job, runs: int) -> None:
        """Most histories begin with a job that runs: that is where the most can go wrong."""
        self.world = World(job, must=self.must)
        self.last_job = data.draw(jobs(uid="last-job", **{"rules": [], **SUITED.get(self.ending, {})}))
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
