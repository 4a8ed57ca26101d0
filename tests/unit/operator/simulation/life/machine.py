# SPDX-License-Identifier: Apache-2.0
"""The whole machine."""

from datetime import timedelta

from hypothesis import strategies as st
from hypothesis.stateful import initialize

from dtjob.api.job import Job
from tests.unit.operator.simulation.life.accidents import Accidents
from tests.unit.operator.simulation.life.endings import Endings
from tests.unit.operator.simulation.life.stage import jobs
from tests.unit.operator.simulation.operator import World

CLOCKS_AHEAD = (0.0, 0.0, 0.0, 1.5, -1.5, 20.0, -20.0, 400.0, -400.0)
"""Seconds that the nodes' clocks may be ahead of the operator's."""


class Life(Endings, Accidents):
    """The life of some jobs, and their `ending`."""

    @initialize(
        data=st.data(), job=jobs() | jobs(elastic=True), runs=st.integers(0, 3), skew=st.sampled_from(CLOCKS_AHEAD)
    )
    def begins(self, data: st.DataObject, job: Job, runs: int, skew: float) -> None:
        """Most histories begin with a job that runs: that is where the most can go wrong."""
        self.world = World(job, strict=True)
        self.world.skew = timedelta(seconds=skew)
        self.last_job = data.draw(jobs(uid="last-job", **{"rules": [], **self.ending.suited}))
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
