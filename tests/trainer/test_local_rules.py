# SPDX-License-Identifier: Apache-2.0
"""`dtjob run` obeys the rules about failures, as far as processes have what they are about."""

import pytest

from tests.trainer.support.local_runs import LocalRun, manifest

pytestmark = pytest.mark.timeout(300)

PROGRAM = """
import os, signal, sys
match os.environ["DTJOB_ATTEMPT"]:
    case "0": sys.exit(3)
    case "1": os.kill(os.getpid(), signal.SIGSEGV)
    case _: sys.exit(42)
"""
RULES = [
    {"action": "FailJob", "onReasons": ["OOMKilled"]},
    {"action": "RestartAndIgnoreMaxRestarts", "onExitCodes": {"operator": "In", "values": [3]}, "roles": ["chief"]},
    {"action": "Restart", "onSignals": ["SIGSEGV"]},
    {"action": "RestartAndIgnoreMaxRestarts", "onPodConditions": [{"type": "DisruptionTarget"}]},
    {"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [3, 139]}},
]


def test_a_programs_exit_codes_and_signals_are_what_the_rules_say(tmp_path):
    """What the supervisor makes of them is what is asked about; with maxRestartsWithoutProgress 1 a second failure ends
    the job."""
    program = tmp_path / "failing.py"
    program.write_text(PROGRAM)
    policy = {"maxRestartsWithoutProgress": 1, "rules": RULES, "backoff": {"initialSeconds": 0, "maxSeconds": 0}}
    job = manifest(
        "digits-mirrored.yaml", tmp_path / "job.yaml", 1, program={"entrypoint": str(program)}, failurePolicy=policy
    )
    with LocalRun(job, tmp_path / "runs") as run:
        code, result = run.end()
        assert run.processes() == {}
    assert code == 1
    assert "left out here: failurePolicy.rules[0].onReasons, failurePolicy.rules[3].onPodConditions" in run.told
    assert (
        "chief-0 failed (exit code 3); failurePolicy.rules[1] (RestartAndIgnoreMaxRestarts) matches exit code 3"
        in run.told
    )
    assert "chief-0 was killed (SIGSEGV); failurePolicy.rules[2] (Restart) matches signal SIGSEGV" in run.told
    assert "chief-0 failed (exit code 42); failurePolicy.rules[4] (FailJob) matches exit code 42" in run.told
    assert (result["phase"], result["reason"]) == ("Failed", "PodFailurePolicy")
    assert result["restarts"] == {"total": 2, "byCause": {"Error": 1, "Signal": 1}}
    assert result["lastFailure"]["exitCode"] == 42
