# SPDX-License-Identifier: Apache-2.0
"""When the operator must have seen that a node is lost, if the peers of its pod failed before that showed."""

import pytest

from dtjob.api.status.status import Status
from tests.unit.operator import builders
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.operator import World

ONCE = {"maxRestartsWithoutProgress": 1}


@pytest.mark.parametrize("grace", [1, 30, 60, 600])
@pytest.mark.parametrize("shows", [5.0, 45.0])
def test_the_loss_of_a_node_gives_the_charge_back_whatever_the_grace_period_of_its_pod(shows: float, grace: int):
    life, checkpoint = Life(), {"storage": {"volume": {"emptyDir": {}}}, "saveTimeoutSeconds": grace}
    job = builders.job(program=False, checkpoint=checkpoint, failurePolicy=ONCE)
    with World(job, strict=True) as life.world:
        life.world.run(1)
        life.all_run()
        life.world.run(1)
        life.peers_die("digits-worker-1-0", "lost", 12.0, shows)
        life.all_run()
        life.world.run(10)
        incident = Status.read(life.status("digits")).internal.incident
        assert incident is not None
        assert (incident.cause, incident.charged) == ("Disruption", 0)
