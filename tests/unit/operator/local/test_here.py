from __future__ import annotations

from dtjob.api.run_policy import CleanPods
from dtjob.crd import problems
from dtjob.local.here import job_here, manifest_of
from tests.unit.operator.builders import job


def test_a_job_here_has_the_runs_uid_and_no_status():
    here = job_here(job().model_copy(update={"status": {"phase": "Failed"}}), "uid-7")
    assert (here.metadata.uid, here.metadata.generation, here.status) == ("uid-7", 1, {})


def test_no_process_stays_after_the_run():
    assert job_here(job(runPolicy={"cleanPods": "None"}), "u").spec.run_policy.clean_pods is CleanPods.RUNNING
    assert job_here(job(runPolicy={"cleanPods": "All"}), "u").spec.run_policy.clean_pods is CleanPods.ALL


def test_the_stored_job_reads_as_the_job():
    here = job_here(job(), "uid-7")
    assert problems.to_job(manifest_of(here)) == here
