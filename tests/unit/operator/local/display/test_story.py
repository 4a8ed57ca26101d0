# SPDX-License-Identifier: Apache-2.0
from dtjob.local.display.story import IMPORTING, OWN_LOOP, Story, progress_text
from dtjob.plan.actions import Event
from tests.unit.operator.local.display.snapshots import report, snapshot


def test_events_are_printed_but_for_those_about_pods():
    story = Story()
    assert story.event(Event("Warning", "Blocked", "no room")) == ["no room"]
    for reason in ("SuccessfulCreate", "SuccessfulDelete", "FailedCreate", "Succeeded", "Failed"):
        assert story.event(Event("Normal", reason, "Created 3 pods")) == []


def test_training_begins_once():
    story = Story()
    look = snapshot([report("chief-0", step=0, totalSteps=460)])
    assert story.observe(snapshot()) == [IMPORTING]
    assert story.observe(look) == ["training begins: 460 steps"]
    assert story.observe(look) == []


def test_a_loop_of_the_program_is_told_once():
    story = Story()
    look = snapshot([report("chief-0", "starting", trainsItself=True)])
    assert story.observe(look) == [OWN_LOOP]
    assert story.observe(look) == []


def test_a_resumed_run_says_from_where():
    look = snapshot([report("chief-0", step=100, restoredStep=100)])
    assert Story().observe(look) == ["training goes on from the checkpoint at step 100"]


def test_restarts_of_survivors_are_printed_in_one_line_once_their_cause_is_known():
    story = Story()
    story.observe(snapshot([report("chief-0"), report("worker-0")]))
    waiting = [report(task, "waiting", restartsInPlace=1) for task in ("chief-0", "worker-0")]
    assert story.observe(snapshot(waiting)) == []
    cause = {"cause": "worker-1 was lost"}
    going = [report(task, "starting", restartsInPlace=1, lastRestart=cause) for task in ("chief-0", "worker-0")]
    (line,) = story.observe(snapshot(going))
    assert line == "chief-0, worker-0: started again in place (worker-1 was lost)"
    assert story.observe(snapshot(going)) == []


def test_a_recovery_is_printed_once_with_its_seconds():
    story = Story()
    story.observe(snapshot([report("chief-0")]))
    look = snapshot([report("chief-0", restoredStep=300)], recovery_seconds=(4.12,))
    (line,) = story.observe(look)
    assert line == ("training goes on from the checkpoint at step 300; the first new step came 4.1 s after the failure")
    assert story.observe(look) == []


def test_each_evaluation_is_printed_once():
    story = Story()
    evaluator = report(
        "evaluator-0", "evaluating", evaluation={"step": 100, "metrics": {"loss": 0.2, "accuracy": 0.95}}
    )
    assert story.observe(snapshot([evaluator])) == ["evaluator: accuracy 0.95, loss 0.2 at step 100"]
    assert story.observe(snapshot([evaluator])) == []


def test_progress_in_one_line():
    assert progress_text(snapshot()) == ""
    chief = report("chief-0", step=115, totalSteps=460, loss=0.31234, stepsPerSecond=41.234, etaSeconds=8.4)
    assert progress_text(snapshot([chief])) == "step 115 of 460 (25%), loss 0.3123, 41.2 steps/s, 8s left"
    assert progress_text(snapshot([report("chief-0", step=7)])) == "step 7 of ?"
    third = report("chief-0", step=7, epoch=2, totalEpochs=20, loss=0.5, stepsPerSecond=2.0)
    assert progress_text(snapshot([third])) == "epoch 3/20, step 7 of ?, loss 0.5, 2 steps/s"
    assert progress_text(snapshot([third]), columns=40) == "epoch 3/20, step 7 of ?, loss 0.5"
    assert progress_text(snapshot([third]), columns=30) == "epoch 3/20, step 7 of ?"
    last = report("chief-0", step=7, epoch=20, totalEpochs=20)
    assert progress_text(snapshot([last])) == "epoch 20/20, step 7 of ?"
    beyond = report("chief-0", step=10, totalSteps=4)
    assert progress_text(snapshot([beyond])) == "step 10 of 4 (100%)", "the checkpoint was of more than was asked for"
