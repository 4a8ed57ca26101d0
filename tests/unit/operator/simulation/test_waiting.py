# SPDX-License-Identifier: Apache-2.0
"""Which pods a simulated kubelet still has to start."""

from tests.unit.operator import builders
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.life.outsiders import injects_a_sidecar
from tests.unit.operator.simulation.operator import World


def test_a_pod_waits_for_its_image_while_its_sidecar_runs() -> None:
    life = Life()
    with World(builders.job("Default")) as life.world:
        life.world.cluster.webhook = injects_a_sidecar
        life.world.run(1)
        life.set_status("digits-chief-0-0", builders.waiting("ImagePullBackOff"))
        assert life.waiting() == ["digits-chief-0-0"]
        life.all_run()
        assert life.waiting() == []
