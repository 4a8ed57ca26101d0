# SPDX-License-Identifier: Apache-2.0
import json
import signal
from pathlib import Path

import pytest

from dtjob.local.display.summary import accuracy, finite, summary, summary_text
from tests.unit.operator.local.display.snapshots import report, snapshot

RUN = Path("/runs/run-1")
CHIEF = report(
    "chief-0",
    "finished",
    step=460,
    totalSteps=460,
    epoch=20,
    totalEpochs=20,
    loss=0.0153,
    metrics={"accuracy": 0.99, "val_accuracy": 0.97, "val_loss": 0.1},
    checkpoint={"step": 460, "time": "2026-11-21T10:00:02Z"},
    model="/runs/run-1/checkpoints/model.keras",
)


def text_of(result):
    return "\n".join(summary_text(result, RUN / "logs", "dtjob run digits.yaml"))


def test_a_metric_that_is_no_finite_number_is_null_in_json():
    """A loss that diverged: others' JSON has no NaN, and this is the run that a script most wants to hear of."""
    diverged = report("chief-0", step=4, metrics={"loss": float("nan"), "val_loss": float("inf"), "mae": 0.5})
    result = summary(snapshot([diverged], status={"phase": "Failed"}, recovery_seconds=(1.5,)), RUN, False, None)
    read = json.loads(json.dumps(finite(result), allow_nan=False))
    assert read["metrics"] == {"loss": None, "val_loss": None, "mae": 0.5}
    assert read["recoverySeconds"] == [1.5]


def test_success_has_all_that_was_asked_for():
    attempts = {"attempts": {"exceptions": {"chief-0": 1}}}
    status = {
        "phase": "Succeeded",
        "restarts": {"total": 2, "causes": {"Signal": 2}, "evaluator": 4},
        "internal": attempts,
    }
    look = snapshot([CHIEF], status=status, recovery_seconds=(4.1, 3.9), elapsed=61.04)
    result = json.loads(json.dumps(summary(look, RUN, False, None)))
    assert (result["phase"], result["job"], result["steps"]) == ("Succeeded", "digits", 460)
    assert result["restarts"] == {"total": 6, "byCause": {"Signal": 2, "Evaluator": 4}}
    assert result["recoverySeconds"] == [4.1, 3.9]
    assert result["model"] == "/runs/run-1/checkpoints/model.keras"
    assert result["runDirectory"] == "/runs/run-1"
    text = text_of(result)
    for part in (
        "has succeeded in 1m1s",
        "validation accuracy  0.9700",
        "last epoch           20 of 20: accuracy 0.99, val_accuracy 0.97, val_loss 0.1",
        "last step            460 of 460: loss 0.0153",
        "log                  /runs/run-1/logs/digits-chief-0-1.log",
        "6 (Signal 2, Evaluator 4)",
        "4.1 s, 3.9 s",
        "model",
    ):
        assert part in text


def test_the_summary_names_the_command_that_shows_the_events():
    result = summary(snapshot([CHIEF], status={"phase": "Succeeded"}), RUN, False, None)
    assert "tensorboard" not in text_of(result)
    assert "events               tensorboard --logdir '/a b/events'" in text_of({**result, "events": "/a b/events"})


def test_the_summary_has_goodput_with_the_largest_loss_first():
    seconds = {"kept": "61.25", "restarting": "2.5", "waitingForPods": "12.04", "unknown": "0.7"}
    goodput = {"percentage": 80, "seconds": seconds, "steps": {"kept": 460, "redone": 7}}
    status = {"phase": "Succeeded", "goodput": goodput}
    result = json.loads(json.dumps(summary(snapshot([CHIEF], status=status), RUN, False, None)))
    assert result["goodput"] == goodput
    assert "80% of the time since all tasks ran; waiting for pods 12.0 s, restarting 2.5 s" in text_of(result)
    short = {"kept": "1.5", "starting": "0.6", "saving": "0.03"}
    brief = summary(snapshot(status={"goodput": {"percentage": 70, "seconds": short}}), RUN, False, None)
    assert "ran; starting 0.6 s\n" in text_of(brief), "no part is 0.0 s"
    never = summary(snapshot(status={"goodput": {"seconds": {"starting": "3"}}}), RUN, False, signal.SIGINT)
    assert "goodput" not in text_of(never)


def test_failure_shows_the_first_cause_and_its_log():
    failure = {
        "task": "worker-1",
        "pod": "digits-worker-1-3",
        "logTail": "Traceback\nValueError: no data",
        "exitCode": 1,
    }
    status = {"phase": "Failed", "message": "worker-1 failed (exit code 1); …", "lastFailure": failure}
    result = summary(snapshot(status=status), RUN, False, None)
    assert result["lastFailure"]["task"] == "worker-1"
    text = text_of(result)
    assert "has failed after 0s: worker-1 failed (exit code 1)" in text
    assert "/runs/run-1/logs/digits-worker-1-3.log" in text
    assert "| ValueError: no data" in text


TYPO = {
    "task": "worker-1",
    "pod": "digits-worker-1-3",
    "message": "failed after step 64: train.py:8: KeyError: 'los' (exit code 1)",
    "exception": {"type": "KeyError", "message": "'los'", "location": "train.py:8"},
    "logTail": "Traceback\nKeyError: 'los'",
}


def test_an_exception_is_told_once_and_the_log_is_named():
    message = "the program failed twice in the same way: train.py:8: KeyError: 'los' (worker-1, exit code 1)"
    status = {"phase": "Failed", "message": message, "lastFailure": TYPO}
    text = text_of(summary(snapshot(status=status), RUN, False, None))
    assert text.count("KeyError") == 1
    assert "/runs/run-1/logs/digits-worker-1-3.log" in text


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_shows_the_failure_that_came_before_and_its_log(number: signal.Signals):
    text = text_of(summary(snapshot([CHIEF], status={"phase": "Running", "lastFailure": TYPO}), RUN, False, number))
    rows = dict(line.strip().split("  ", 1) for line in text.splitlines()[1:])
    assert rows["failure"].strip() == "worker-1 failed after step 64: train.py:8: KeyError: 'los' (exit code 1)"
    assert rows["log"].strip() == "/runs/run-1/logs/digits-worker-1-3.log"
    assert "dtjob run digits.yaml" in rows["go on"]


def test_interruption_says_how_to_go_on():
    result = summary(snapshot([CHIEF]), RUN, True, signal.SIGINT)
    assert (result["phase"], result["reason"], result["resumed"]) == ("Interrupted", "SIGINT", True)
    assert "dtjob run digits.yaml   (goes on from the checkpoint at step 460)" in text_of(result)
    nothing_saved = summary(snapshot(), RUN, False, signal.SIGTERM)
    assert "no checkpoint was saved" in text_of(nothing_saved)


def test_resume_is_shown_only_if_it_is_approximate():
    approximate = summary(snapshot([{**CHIEF, "resume": "approximate"}]), RUN, False, None)
    assert "approximate: a restart can change the numbers" in text_of(approximate)
    exact = summary(snapshot([{**CHIEF, "resume": "exact"}]), RUN, False, None)
    assert "numbers" not in text_of(exact)


def test_accuracy_is_the_chiefs_validation_else_the_evaluators():
    evaluator = report("evaluator-0", evaluation={"step": 1, "metrics": {"accuracy": 0.5}})
    assert accuracy(summary(snapshot([CHIEF, evaluator]), RUN, False, None)) == ("validation accuracy", 0.97)
    assert accuracy(summary(snapshot([evaluator]), RUN, False, None)) == ("evaluator accuracy", 0.5)
    assert accuracy(summary(snapshot(), RUN, False, None)) is None
