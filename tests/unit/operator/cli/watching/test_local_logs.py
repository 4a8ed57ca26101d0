# SPDX-License-Identifier: Apache-2.0
"""`dtjob logs` and `dtjob status` of a run on this machine."""

import json
from pathlib import Path

import pytest

NOTE = "logs of the local run .dtjob/first/run-2; with -n NAMESPACE, of the job in a cluster"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run of `first` on this machine, whose worker-0 was started twice."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    run = tmp_path / ".dtjob" / "first" / "run-2"
    (run / "logs").mkdir(parents=True)
    (run.parent / "run-1").mkdir()
    (run / "run.json").write_text(json.dumps({"uid": "u", "job": "first", "spec_hash": "h", "phase": "Succeeded"}))
    for pod, text in (
        ("worker-0-0", "a\nb\n"),
        ("worker-0-1", " 1/9\r 9/9\nc\n"),
        ("worker-1-0", "d\n\x1b[31me\x1b[0m"),
        ("evaluator-0-0", "f\n"),
    ):
        (run / "logs" / f"first-{pod}.log").write_text(text)
    (run / "logs" / "dtjob.log").write_text("not of a task\n")
    return run


@pytest.mark.parametrize(
    ("options", "seen"),
    [
        ((), "worker-0 a, worker-0 b, worker-0.1 9/9, worker-0.1 c, worker-1 d, worker-1 e, evaluator-0 f"),
        (("-f",), "worker-0 a, worker-0 b, worker-0.1 9/9, worker-0.1 c, worker-1 d, evaluator-0 f, worker-1 e"),
        (("--tail", "1"), "worker-0 b, worker-0.1 c, worker-1 e, evaluator-0 f"),
        (("--task", "worker-1"), "worker-1 d, worker-1 e"),
        (("--task", "evaluator", "--work-dir", ".dtjob"), "evaluator-0 f"),
        (("--previous",), "worker-0 a, worker-0 b"),
        (("--attempt", "1"), "worker-0.1 9/9, worker-0.1 c"),
    ],
)
def test_logs_of_a_local_run_need_no_cluster(dtjob, run: Path, options: tuple[str, ...], seen: str) -> None:
    code, out, err = dtjob("logs", "first", *options)
    assert code == 0
    assert err == ("" if "--work-dir" in options else f"{NOTE}\n")
    assert ", ".join(" ".join(line.replace("|", "").split()) for line in out.splitlines()) == seen


def test_a_job_of_a_cluster_is_meant_where_an_option_names_one_or_no_run_is_here(dtjob, run: Path) -> None:
    for job, *options in (("first", "-n", "team"), ("first", "--context", "big"), ("second",)):
        code, _, err = dtjob("logs", job, *options)
        assert (code, err) == (2, "dtjob: no cluster is configured; give --kubeconfig FILE, or set KUBECONFIG\n")


def test_a_work_directory_without_the_run_is_refused(dtjob, run: Path) -> None:
    assert "--work-dir: .dtjob has no run of second" in dtjob("logs", "second", "--work-dir", ".dtjob")[2]
    assert "--work-dir: it is for local runs" in dtjob("logs", "first", "--work-dir", ".dtjob", "-n", "team")[2]


def test_the_status_of_a_local_run_is_that_of_its_job(dtjob, run: Path) -> None:
    record = json.loads((run / "run.json").read_text())
    incident = {"number": 1, "time": "2026-11-23T10:10:00Z", "task": "worker-1", "reason": "Signal", "message": "died"}
    status = {"reason": "Completed", "startTime": "2026-11-23T10:00:00Z", "incidents": [incident]}
    (run / "run.json").write_text(json.dumps({**record, "status": {**status, "progress": {"step": 9}}}))
    code, out, err = dtjob("status", "first")
    assert (code, err) == (0, NOTE.replace("logs", "status") + "\n")
    assert out.startswith("first: Succeeded (Completed)\n")
    assert "  step           9\n" in out
    assert out.endswith("    2026-11-23 10:10:00  Signal: worker-1 died\n")
    assert json.loads(dtjob("status", "first", "-o", "json")[1])["status"]["incidents"] == [incident]
