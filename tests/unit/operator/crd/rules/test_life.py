# SPDX-License-Identifier: Apache-2.0
"""Rules about a job's life: the path in managedBy, over any text."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dtjob.api.job import Job
from dtjob.crd.answers.problems import problems
from dtjob.objects.pod.environment import seconds_after_sigterm
from dtjob.objects.topology import chief_task
from tests.refusals.manifests import CHECKPOINT, Manifest, job


@given(
    domain=st.from_regex(r"[a-z0-9.-]{1,20}", fullmatch=True), path=st.text("ab/~%!;=:+-._", min_size=1, max_size=20)
)
@example("a", "/")
def test_a_domain_before_a_path_is_taken_where_it_is_a_subdomain(domain: str, path: str) -> None:
    labels = domain.split(".")
    good = all(label and label[0] != "-" and label[-1] != "-" for label in labels)
    assert (problems(job(managedBy=f"{domain}/{path}")) == []) is good


def manifest(grace: int | None, sleep: int | None, save: int | None) -> Manifest:
    hook = {} if sleep is None else {"lifecycle": {"preStop": {"sleep": {"seconds": sleep}}}}
    spec = {"containers": [{"name": "tensorflow", **hook}]} | ({} if grace is None else {_GRACE: grace})
    checkpoint = CHECKPOINT if save is None else {**CHECKPOINT, "saveTimeoutSeconds": save}
    return job("Mirrored", replicaSpecs={"chief": {"template": {"spec": spec}}}, checkpoint=checkpoint)


_GRACE = "terminationGracePeriodSeconds"
seconds = st.none() | st.integers(1, 200)


@given(grace=seconds, sleep=seconds, save=seconds)
def test_an_accepted_grace_period_is_long_enough_for_a_save(
    grace: int | None, sleep: int | None, save: int | None
) -> None:
    made, needed = manifest(grace, sleep, save), save or 60
    found = problems(made)
    assert bool(found) == (grace is not None and grace < needed + (sleep or 0))
    if found:
        assert [problem.field for problem in found] == [f"spec.replicaSpecs.chief.template.spec.{_GRACE}"]
    else:
        running = Job.model_validate(made)
        assert seconds_after_sigterm(running, chief_task(running)) >= needed


@pytest.mark.parametrize(
    ("mount", "refused"), [(None, True), ("Chief", True), ("All", False)], ids=["default", "Chief", "All"]
)
def test_all_workers_do_not_go_with_an_evaluator_on_the_chiefs_node(mount: str | None, refused: bool):
    volume = {"volume": {"nfs": {"server": "a", "path": "/"}}}
    checkpoint = {"storage": volume | ({"mountOn": mount} if mount else {})}
    roles = {"chief": {}, "worker": {}, "evaluator": {}}
    found = problems(job(replicaSpecs=roles, successPolicy="AllWorkers", checkpoint=checkpoint))
    assert [one.field for one in found] == ["spec.successPolicy"] * refused
