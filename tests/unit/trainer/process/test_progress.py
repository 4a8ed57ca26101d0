# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.progress: JSON lines, merged, not too many; steps count over all stages of a program."""

import json
import os

import numpy as np
import pytest

from dtjob_trainer.process.progress import INTERVAL_SECONDS, LONGEST_MESSAGE, MOST_METRICS, Pace, Progress


def test_reports_at_once_and_holds_updates_back() -> None:
    read_end, write_end = os.pipe()
    progress = Progress(write_end)
    progress.report(state="training")
    for step in range(100):
        progress.update(step=step)
    progress.report(checkpoint={"step": 99})
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        lines = [json.loads(line) for line in pipe]
    assert lines[0] == {"state": "training"}
    assert lines[-1]["checkpoint"] == {"step": 99}
    assert len(lines) < 50
    merged = {key: value for line in lines for key, value in line.items()}
    assert merged == progress.status == {"state": "training", "step": 99, "checkpoint": {"step": 99}}


def test_a_reader_that_is_gone_does_not_stop_training() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    progress = Progress(write_end)
    progress.report(step=1)
    progress.report(step=2)
    assert progress.status == {"step": 2}
    os.close(write_end)


def test_a_delayed_update_is_reported_after_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("dtjob_trainer.process.progress.time.monotonic", lambda: now)
    progress = Progress()
    progress.update(step=1)
    progress.update(step=2)
    assert progress.status == {"step": 1}
    now += 2 * INTERVAL_SECONDS
    progress.update(loss=0.5)
    assert progress.status == {"step": 2, "loss": 0.5}


def test_a_pace_is_smoothed_and_silent_before_the_first_measurement() -> None:
    pace = Pace()
    assert pace.keys(100, 8) == {}
    for measured, waited, left, batch, expected in (
        (10.0, None, 100, None, {"stepsPerSecond": 10.0, "etaSeconds": 10.0}),
        (20.0, 0.617, 90, 8, {"stepsPerSecond": 13.0, "etaSeconds": 6.9, "examplesPerSecond": 104.0}),
        (0.0, 0.0, 0, None, {"stepsPerSecond": 13.0, "etaSeconds": 0.0}),
    ):
        pace.measured(measured, waited)
        assert pace.keys(left, batch) == expected | {"inputWait": waited}


def test_a_report_holds_single_numbers_and_not_too_many() -> None:
    progress, told = Progress(), list[str]()
    progress.on_left_out = told.extend
    matrix = [[0.5] * 300] * 300
    many = {f"metric-{number}": float(number) for number in range(100)}
    progress.report(step=1, metrics={"confusion": matrix, "n" * 1000: 1.0, **many})
    assert list(progress.status["metrics"]) == list(many)[:MOST_METRICS]
    assert told == ["confusion", "n" * 1000, *list(many)[MOST_METRICS:]]
    progress.report(evaluation={"step": 1, "metrics": {"confusion": matrix, "accuracy": np.float32(0.5)}})
    assert progress.status["evaluation"] == {"step": 1, "metrics": {"accuracy": 0.5}}
    progress.report(state="failed", message="x" * 100_000)
    assert len(progress.status["message"]) == LONGEST_MESSAGE
    assert len(json.dumps(progress.status, default=float)) < 65536


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
