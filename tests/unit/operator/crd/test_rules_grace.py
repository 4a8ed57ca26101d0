"""How long a pod may take to end: a rule's Python over any numbers, and what the pod then has."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dtjob.api.job import Job
from dtjob.crd.problems import problems
from dtjob.objects.pod.grace import seconds_after_sigterm
from dtjob.objects.topology import chief_task
from tests.refusals.manifests import CHECKPOINT, Manifest, job


def manifest(grace: int | None, sleep: int | None, save: int | None) -> Manifest:
    hook = {} if sleep is None else {"lifecycle": {"preStop": {"sleep": {"seconds": sleep}}}}
    spec = {"containers": [{"name": "tensorflow", **hook}]} | ({} if grace is None else {_GRACE: grace})
    checkpoint = CHECKPOINT if save is None else {**CHECKPOINT, "saveTimeoutSeconds": save}
    return job("Mirrored", replicaSpecs={"chief": {"template": {"spec": spec}}}, checkpoint=checkpoint)


_GRACE = "terminationGracePeriodSeconds"
seconds = st.none() | st.integers(1, 200)


@given(grace=seconds, sleep=seconds, save=seconds)
def test_what_is_taken_leaves_a_save_its_time(grace: int | None, sleep: int | None, save: int | None) -> None:
    made, needed = manifest(grace, sleep, save), save or 60
    found = problems(made)
    assert bool(found) == (grace is not None and grace < needed + (sleep or 0))
    if found:
        assert [problem.field for problem in found] == [f"spec.replicaSpecs.chief.template.spec.{_GRACE}"]
    else:
        running = Job.model_validate(made)
        assert seconds_after_sigterm(running, chief_task(running)) >= needed
