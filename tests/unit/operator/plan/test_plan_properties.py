# SPDX-License-Identifier: Apache-2.0
"""Any job, any history, a crash anywhere: the real operator over a simulated cluster (`../simulation/`).

Hypothesis plays users, kubelets, node failures, strangers, supervisors, the watch and the operator's own crashes. After
each history everything is repaired, and each job must come to Running or to its end by itself, waking up only when it
said it would. CI runs the same histories each time; `make simulate` looks for new ones.
"""

import logging
import os
from copy import deepcopy
from datetime import timedelta
from math import ceil
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import run_state_machine_as_test

from dtjob.api.job import Job
from dtjob.api.phase import ENDED
from dtjob.api.status.status import Status
from dtjob.objects import labels, topology
from dtjob.plan.actions import Create, Delete, Plan, StopServing
from dtjob.plan.seen.children import Children
from dtjob.plan.seen.children import ended as has_ended
from tests.unit.operator import builders
from tests.unit.operator.builders import NOW, at
from tests.unit.operator.simulation.life.endings import ENDINGS, Ending
from tests.unit.operator.simulation.life.machine import Life
from tests.unit.operator.simulation.life.pods import disruptions
from tests.unit.operator.simulation.life.stage import jobs
from tests.unit.operator.simulation.operator import World


@st.composite
def observed(draw: st.DrawFn) -> tuple[Job, Children]:
    """A job at any attempts, and any pods: missing, of this attempt or an earlier one, in any state, some deleted."""
    job = draw(jobs())
    attempts = {one.id: draw(st.integers(0, 2)) for one in topology.tasks(job)}
    counts = {"total": 0, "evaluator": attempts.get("evaluator-0", 0)}
    status = {**builders.remembered(attempts, allCreated=draw(st.booleans())), "restarts": counts}
    job = builders.with_status(job, status)
    back_off = st.just(builders.waiting("ImagePullBackOff"))
    states = st.one_of(st.just({}), st.just(builders.running()), back_off, ends, disruptions)
    objects = []
    for one in topology.tasks(job):
        for attempt in range(attempts[one.id] + 1):
            if draw(st.integers(0, 3)):
                pod = builders.pod(job, one.id, deepcopy(draw(states)), attempt=attempt)
                objects.append(builders.deleting(pod) if draw(st.integers(0, 3)) == 0 else pod)
    if draw(st.booleans()):
        another = builders.job(uid="another")
        objects.append(builders.pod(another, "chief-0", deepcopy(draw(states)), attempt=draw(st.integers(0, 3))))
    return job, Children(tuple(objects))


ends = st.builds(builders.ended, st.sampled_from((0, 1, 76, 137, 143)), st.sampled_from((NOW, at(5))))


@settings(max_examples=50, deadline=None, derandomize=True, phases=(Phase.generate, Phase.shrink))
@given(seen=observed(), seconds=st.sampled_from((0, 1, 6, 44, 46, 500)))
def test_any_plan_is_pure_and_settles(seen: tuple[Job, Children], seconds: int) -> None:
    """Pure; touches only what is ours and superseded; and asks for nothing more when what it asked for is there."""
    job, children = seen
    now = at(seconds)
    for _ in range(5):  # the evaluator is made once the pods that train are there
        before = deepcopy((job, children))
        made = builders.plan_answered(job, children, now)
        assert (job, children) == before, "the inputs were changed"
        assert builders.plan_answered(job, children, now) == made
        check_actions(builders.with_status(job, made.status or job.status), children, made)
        if made.status is None and not made.actions:
            return
        job = builders.with_status(job, made.status or job.status)
        children = builders.carried_out(children, made, now)
    raise AssertionError(f"still asks for {made}")


def check_actions(job: Job, children: Children, made: Plan) -> None:
    """What each action may be about. `job` has the status that is written before them."""
    pods = [one for one in children.objects if one["kind"] == "Pod"]
    ours = [one for one in pods if labels.controller_uid(one) == job.metadata.uid]
    owned = {one["metadata"]["uid"]: one for one in ours}
    names = [one["metadata"]["name"] for one in owned.values()]
    attempts = Status.read(job.status).internal.attempts
    created = [action.name for action in made.actions if isinstance(action, Create)]
    assert len(created) == len(set(zip(created, (a.kind for a in made.actions if isinstance(a, Create)), strict=True)))
    for action in made.actions:
        if isinstance(action, Create):
            assert action.name not in names
            if action.kind == "Pod" and labels.task_id(action.manifest) == topology.chief_task(job).id:
                earlier = [pod for pod in owned.values() if labels.task_id(pod) == labels.task_id(action.manifest)]
                assert all(has_ended(pod) for pod in earlier), "the chief task would be there twice"
        else:
            assert isinstance(action, (Delete, StopServing)), "nobody has changed labels"
            pod = owned[action.uid]
            over = job.status.get("phase") in ENDED
            assert over or topology.attempt_of(pod) < attempts.of(labels.task_id(pod) or "")
    if made.look_again_at is not None:
        assert made.look_again_at <= NOW + timedelta(hours=2)


DEEP = int(os.environ.get("DTJOB_SIMULATED_LIVES", "0"))
"""Lives to look through, each run others, of more steps; 0: 308, and the same each time."""

SETTINGS = settings(
    # The first of an ending is the simplest life, in which nothing happens.
    max_examples=ceil(DEEP / len(ENDINGS)) or 11,
    stateful_step_count=40 if DEEP else 20,
    deadline=None,
    # To shorten a failing life takes ten minutes and gigabytes. So it is printed as it is.
    phases=(Phase.generate,),
    report_multiple_bugs=False,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
)


@pytest.mark.parametrize("ending", ENDINGS, ids=lambda ending: ending.name)
def test_any_life_of_a_job_keeps_the_guarantees(ending: Ending, pytestconfig: pytest.Config) -> None:
    """No rule is broken at any call, and everything converges. Each ending has histories of its own."""

    @seed(f"{ending.name} {pytestconfig.getoption('--hypothesis-seed')}")
    class Asked(Life):
        pass

    Asked.ending = ending
    run_state_machine_as_test(Asked, settings=SETTINGS)


def test_a_plan_that_breaks_a_rule_is_found_where_nothing_is_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    with World(builders.job(), strict=True) as world:

        def broken(*_: Any) -> None:
            raise AssertionError("somebody was started anew")

        monkeypatch.setattr(world.cluster.plan_rules, "check", broken)
        logging.disable(logging.CRITICAL)
        try:
            with pytest.raises(AssertionError, match="somebody was started anew"):
                world.run(1)
        finally:
            logging.disable(logging.NOTSET)
