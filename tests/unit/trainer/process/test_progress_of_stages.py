# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.progress: steps count over all stages of a program."""

from dtjob_trainer.process.progress import Progress


def begun(steps_before: int = 12) -> Progress:
    """Of the second stage, after a first one of so many steps."""
    progress = Progress()
    progress.begin_stage(1)
    progress.report(step=steps_before, restoredStep=0, checkpoint={"step": steps_before})
    progress.steps_before += steps_before
    progress.begin_stage(2)
    return progress


def test_the_first_stage_has_no_number_and_counts_as_it_is() -> None:
    progress = Progress()
    progress.begin_stage(1)
    progress.report(step=3, totalSteps=8, checkpoint={"step": 2, "time": "now"})
    assert progress.status == {"step": 3, "totalSteps": 8, "checkpoint": {"step": 2, "time": "now"}}


def test_a_later_stage_counts_on() -> None:
    progress = begun()
    progress.report(step=3, totalSteps=8, writing=2, checkpoint={"step": 2, "time": "now"})
    assert progress.status["stage"] == 2
    assert progress.status["checkpoint"] == {"step": 14, "time": "now"}
    assert [progress.status[key] for key in ("step", "totalSteps", "writing", "restoredStep")] == [15, 20, 14, 0]


def test_a_stage_that_begins_from_zero_keeps_the_checkpoint_of_the_last_stage() -> None:
    progress = begun()
    progress.report(restoredStep=0, checkpoint=None)
    assert (progress.status["restoredStep"], progress.status["checkpoint"]) == (0, {"step": 12})


def test_a_stage_that_ended_before_reports_nothing_and_the_next_resumes_at_its_end() -> None:
    progress = Progress()
    progress.begin_stage(1)
    progress.passes_over = True
    progress.report(state="training", step=12, restoredStep=12, checkpoint={"step": 12}, totalSteps=12, epoch=4)
    assert progress.status == {"state": "training"}
    progress.steps_before += 12
    progress.begin_stage(2)
    progress.report(restoredStep=0, checkpoint=None)
    assert (progress.status["restoredStep"], progress.status["checkpoint"]) == (12, {"step": 12})
