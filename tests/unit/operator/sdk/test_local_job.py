# SPDX-License-Identifier: Apache-2.0
"""A job on this machine as an object, with a stand-in for `dtjob run`."""

import json
import sys
from pathlib import Path

import pytest

import dtjob
from dtjob.sdk import local_job


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Makes a job whose `dtjob run` prints two lines and this summary."""

    def make(**summary: object) -> dtjob.LocalJob:
        program = tmp_path / "python"
        text = json.dumps({"runDirectory": str(tmp_path / "run"), **summary})
        program.write_text(f"#!{sys.executable}\nimport sys\nsys.stderr.write('one\\ntwo\\n')\nprint({text!r})\n")
        program.chmod(0o755)
        monkeypatch.setattr(local_job.sys, "executable", str(program))
        return dtjob.LocalJob(tmp_path / "job.yaml", "digits")

    return make


def test_a_local_job_is_waited_for_and_its_models_are_copied(run, tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoints").mkdir(parents=True)
    (tmp_path / "run" / "checkpoints" / "model.keras").write_text("m")
    job = run(phase="Succeeded", steps=3, metrics={"loss": 0.5})
    assert list(job.logs(follow=True)) == ["one", "two"]
    assert job.wait()["phase"] == "Succeeded"
    assert job.metrics() == {"step": 3.0, "loss": 0.5}
    assert job.fetch(directory=tmp_path / "out") == [tmp_path / "out" / "model.keras"]


@pytest.mark.parametrize(
    ("summary", "said"),
    [
        ({"phase": "Failed", "reason": "ProgramFailed", "message": "it ended"}, r"Failed \(ProgramFailed\): it ended"),
        ({"phase": "Interrupted"}, "Interrupted"),
    ],
)
def test_a_failure_has_its_reason(run, summary, said: str) -> None:
    with pytest.raises(dtjob.JobFailed, match=f"^digits: {said}$"):
        run(**summary).wait()


def test_a_run_that_does_not_begin_has_its_last_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(dtjob.JobFailed, match=r"^digits: none.yaml: cannot be read: No such file or directory$"):
        dtjob.LocalJob(Path("none.yaml"), "digits").wait()
