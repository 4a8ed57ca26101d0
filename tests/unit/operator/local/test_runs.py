# SPDX-License-Identifier: Apache-2.0
import errno
import json
import os
from datetime import UTC, datetime

import pytest

from dtjob.api.phase import Phase
from dtjob.api.status.activity import Activity
from dtjob.local.runs import UNFINISHED, RunStateError, open_run, phase_of
from tests.unit.operator.builders import job


def opened(path, digits=None, **options):
    """Open a run and let it go at once, as a `dtjob run` that was killed does."""
    run = open_run(digits or job(), path, **options)
    run.close()
    return run


def test_the_first_run_is_new(tmp_path):
    run = opened(tmp_path)
    assert run.directory == tmp_path / "digits" / "run-1"
    assert not run.resumed
    assert run.checkpoints.is_dir()
    assert run.logs.is_dir()
    assert json.loads((run.directory / "run.json").read_text())["phase"] == UNFINISHED


def test_an_unfinished_run_is_resumed_with_its_uid(tmp_path):
    first, second = opened(tmp_path), opened(tmp_path)
    assert second.resumed
    assert (second.directory, second.record.uid) == (first.directory, first.record.uid)
    assert second.record.starts == 2
    assert "run-1, which had not finished" in second.why


def test_a_failed_run_is_resumed_with_a_new_budget(tmp_path):
    opened(tmp_path).save(Phase.FAILED, {"phase": Phase.FAILED, "internal": {"crashes": {"attempt": 0, "count": 1}}})
    second = opened(tmp_path)
    assert second.resumed
    assert second.record.status is None
    assert "all its restarts again" in second.why


def test_a_run_that_succeeded_is_left_alone(tmp_path):
    first = opened(tmp_path)
    first.save(Phase.SUCCEEDED, {"phase": Phase.SUCCEEDED})
    second = opened(tmp_path)
    assert second.directory.name == "run-2"
    assert second.record.uid != first.record.uid


def test_a_run_whose_training_had_ended_is_left_alone_though_dtjob_was_killed(tmp_path):
    first = opened(tmp_path)
    (first.checkpoints / "DONE").write_text(json.dumps({"uid": first.record.uid, "step": 5}))
    assert opened(tmp_path).directory.name == "run-2"


def test_a_done_mark_of_another_job_does_not_count(tmp_path):
    first = opened(tmp_path)
    (first.checkpoints / "DONE").write_text(json.dumps({"uid": "another", "step": 5}))
    assert opened(tmp_path).resumed


def test_fresh_and_a_changed_manifest_begin_a_new_run(tmp_path):
    opened(tmp_path)
    assert opened(tmp_path, fresh=True).directory.name == "run-2"
    changed = opened(tmp_path, job(workers=3))
    assert changed.directory.name == "run-3"
    assert "the manifest has changed" in changed.why


def test_the_tenth_run_comes_after_the_ninth(tmp_path):
    for number in range(1, 11):
        assert opened(tmp_path, fresh=True).directory.name == f"run-{number}"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"uid": 1, "surprise": 2}', "null"])
def test_a_record_that_cannot_be_read_is_no_run_to_resume(tmp_path, text):
    first = opened(tmp_path)
    (first.directory / "run.json").write_text(text)
    second = opened(tmp_path)
    assert not second.resumed
    assert second.directory.name == "run-2"


def test_a_job_cannot_be_run_twice_at_the_same_time(tmp_path):
    run = open_run(job(), tmp_path)
    with pytest.raises(RunStateError, match=r"is being run in .* already"):
        open_run(job(), tmp_path)
    open_run(job(name="other"), tmp_path).close()
    run.close()
    open_run(job(), tmp_path).close()


def test_a_file_system_without_locks_is_not_a_run(tmp_path, monkeypatch):
    """As Lustre is where it was mounted without flock, or NFS without its lock daemon."""

    def no_locks(*_):
        raise OSError(errno.ENOSYS, "Function not implemented")

    monkeypatch.setattr("fcntl.flock", no_locks)
    with pytest.raises(RunStateError, match=r"--work-dir: .* without locks \(Function not implemented\)"):
        open_run(job(), tmp_path)


def test_the_newest_checkpoint_is_the_highest_step(tmp_path):
    run = opened(tmp_path)
    assert run.latest_checkpoint() is None
    for step in (90, 100, 9):
        (run.checkpoints / f"ckpt-{step}.index").touch()
    (run.checkpoints / "ckpt-200_temp").mkdir()
    assert run.latest_checkpoint() == 100


def test_the_time_that_an_unfinished_run_was_active_is_known_when_it_is_resumed(tmp_path):
    first = opened(tmp_path)
    first.save(UNFINISHED, {"active": {"since": "2026-11-21T10:00:00Z", "seconds": 40}})
    written = datetime(2026, 11, 21, 10, 1, 30, tzinfo=UTC).timestamp()
    os.utime(first.directory / "run.json", (written, written))
    assert opened(tmp_path).active_before == Activity(seconds=130)


def test_a_failed_run_gets_all_its_time_again(tmp_path):
    opened(tmp_path).save(Phase.FAILED, {"active": {"since": "2026-11-21T10:00:00Z", "seconds": 40}})
    assert opened(tmp_path).active_before is None


@pytest.mark.parametrize(
    "fields",
    [
        {"suspend": True},
        {"managedBy": "kueue.x-k8s.io/multikueue"},
        {"activeDeadlineSeconds": 5},
        {"ttlSecondsAfterFinished": 5, "startDeadlineSeconds": 1},
    ],
)
def test_a_run_goes_on_under_other_times(tmp_path, fields):
    opened(tmp_path)
    assert opened(tmp_path, job(**fields)).resumed
    assert not opened(tmp_path, job(cleanPodPolicy="All")).resumed


def test_a_run_of_elastic_workers_goes_on_with_another_number_of_them(tmp_path):
    def asked(replicas, least, **worker):
        specs = {"chief": {}, "worker": {"replicas": replicas, **worker}}
        return job(replicaSpecs=specs, elasticPolicy={"minReplicas": least})

    first = open_run(asked(2, 1), tmp_path)
    first.save(UNFINISHED, {})
    first.close()
    for replicas, least in ((3, 1), (4, 2)):
        again = open_run(asked(replicas, least), tmp_path)
        assert (again.resumed, again.record.uid) == (True, first.record.uid)
        again.save(UNFINISHED, {})
        again.close()
    other = open_run(asked(3, 1, resources={"limits": {"cpu": 1}}), tmp_path)
    assert not other.resumed
    other.close()


def test_a_power_loss_ends_no_run_that_has_begun(disk):
    """Otherwise the next start would train from the begin, and the checkpoints would be of no use."""
    run = opened(disk.where / "work")
    begun = disk.changes()
    run.save(UNFINISHED, {"phase": "Running"})
    saved = disk.changes()
    for seed in range(8):
        disk.lose(begun + seed % (saved - begun + 1), seed)
        after = opened(disk.where / "work")
        assert after.resumed, f"seed {seed}"
        assert after.record.uid == run.record.uid


def test_a_power_loss_keeps_the_phase_of_a_run_that_has_ended(disk):
    run = opened(disk.where / "work")
    run.save(Phase.SUCCEEDED, {"phase": Phase.SUCCEEDED})
    saved = disk.changes()
    for seed in range(8):
        disk.lose(saved, seed)
        assert phase_of(run.directory) == Phase.SUCCEEDED, f"seed {seed}"
