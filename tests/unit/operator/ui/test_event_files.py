# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
from pathlib import Path

from dtjob.ui.event_files import EventFiles
from tests.unit.operator.ui.event_files import scalar, start, text, write


def curves(files: EventFiles) -> dict[str, dict[int, float]]:
    return {one["name"]: dict(zip(one["steps"], one["values"], strict=True)) for one in files.curves()}


def test_scalars_of_training_and_evaluation_are_read_as_they_are_added(tmp_path: Path) -> None:
    files = EventFiles(tmp_path)
    assert curves(files) == {}
    write(tmp_path / "train", 1, scalar(5, loss=0.5, val_loss=0.75), text(5, "notes"))
    assert curves(files) == {"loss": {5: 0.5}, "val_loss": {5: 0.75}}
    write(tmp_path / "train", 1, scalar(10, loss=0.25))
    write(tmp_path / "evaluator", 2, scalar(10, loss=1.5))
    assert curves(files) == {"loss": {5: 0.5, 10: 0.25}, "val_loss": {5: 0.75}, "evaluator loss": {10: 1.5}}


def test_a_process_that_resumes_does_steps_again(tmp_path: Path) -> None:
    write(tmp_path / "train", 1, *(scalar(step, loss=step) for step in (5, 10, 15)))
    write(tmp_path / "train", 2, start(10), scalar(10, loss=0.5))
    assert curves(EventFiles(tmp_path)) == {"loss": {5: 5.0, 10: 0.5}}


def test_evaluations_stay_when_training_goes_back(tmp_path: Path) -> None:
    write(tmp_path / "train", 1, scalar(10, loss=1), scalar(20, loss=2))
    write(tmp_path / "evaluator", 2, *(scalar(step, loss=step) for step in (10, 20, 30)))
    write(tmp_path / "train", 3, start(11), scalar(20, loss=0.5))
    assert curves(EventFiles(tmp_path)) == {
        "loss": {10: 1.0, 20: 0.5},
        "evaluator loss": {10: 10.0, 20: 20.0, 30: 30.0},
    }


def test_a_record_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    path = write(tmp_path, 1, scalar(5, loss=0.5))
    whole = path.read_bytes()
    files = EventFiles(tmp_path)
    for end in range(0, len(whole), 3):
        path.write_bytes(whole[:end])
        assert curves(files) == {}
    path.write_bytes(whole)
    assert curves(files) == {"loss": {5: 0.5}}


def test_a_file_that_only_has_the_name_of_an_event_file_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "events.out.tfevents.1").write_bytes(b"\x05" + bytes(11) + b"hello" + bytes(4))
    write(tmp_path, 2, scalar(5, loss=0.5))
    files = EventFiles(tmp_path)
    assert curves(files) == curves(files) == {"loss": {5: 0.5}}


def test_event_files_are_read_without_tensorflow(tmp_path: Path) -> None:
    write(tmp_path, 1, scalar(5, loss=0.5))
    program = (
        "import sys; from pathlib import Path; from dtjob.ui.event_files import EventFiles; "
        f"assert EventFiles(Path({str(tmp_path)!r})).curves(); assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
