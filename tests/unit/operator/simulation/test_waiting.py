# SPDX-License-Identifier: Apache-2.0
"""Which pods a simulated kubelet still has to start, and what jobs wait for, and for how long."""

from dtjob.api.job import KIND
from tests.unit.operator import builders
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.life.outsiders import budget_is_used_up, gives_an_hour, injects_a_sidecar
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


def test_a_life_does_not_sit_out_a_forged_wait_of_a_year() -> None:
    life = Life()
    with World(builders.job("Default")) as life.world:
        life.world.run(1)
        life.all_run()
        life.disrupt_chief("digits")
        status = life.world.cluster.objects[KIND, "digits"]["status"]
        budget_is_used_up(status, {})
        assert status["internal"]["incident"]["notBefore"] == "2027-11-21T10:00:00Z"
        assert life.longest_wait() <= life.world.job.spec.failure_policy.backoff.max_seconds


def test_a_life_is_at_rest_only_when_the_last_evaluation_is_over() -> None:
    """The evaluator failed for the second time just before training ended. So its next pod comes after a backoff."""
    life = Life()
    backoff = {"initialSeconds": 300, "maxSeconds": 300}
    with World(builders.job("Default", evaluator=True, failurePolicy={"backoff": backoff}), strict=True) as life.world:
        life.settle()
        for attempt in range(2):
            life.set_status(f"digits-evaluator-0-{attempt}", builders.ended(1, life.world.now()))
            life.world.run(1)
            life.all_run()
        life.finish("digits-chief-0-0")
        life.world.run(1)
        assert life.status("digits")["phase"] == "Succeeded"
        assert not life.settled("digits")
        life.settle()
        assert life.done == {builders.JOB_UID}
        life.check_rest()


def test_a_life_is_at_rest_only_when_the_pods_of_ended_jobs_have_ended() -> None:
    """A webhook has given the worker an hour, and it uses all of it."""
    life = Life()
    with World(builders.job(cleanPodPolicy="All", failurePolicy={}), strict=True) as life.world:
        life.world.cluster.webhook = gives_an_hour
        life.settle()
        life.finish("digits-chief-0-0")
        life.settle()
        assert life.status("digits")["phase"] == "Succeeded"
        life.check_rest()
        assert not life.pods()
