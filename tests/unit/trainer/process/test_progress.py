"""dtjob_trainer.process.progress: JSON lines, merged, not too many."""

import json
import os

from dtjob_trainer.process.progress import Progress, timestamp


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


def test_without_a_descriptor_status_is_kept() -> None:
    progress = Progress.from_environment({})
    progress.report(step=1)
    assert progress.status == {"step": 1}


def test_timestamps_are_rfc_3339_in_utc() -> None:
    assert timestamp().endswith("Z")
