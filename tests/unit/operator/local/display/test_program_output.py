# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from dtjob.local.display.program_output import ProgramOutput
from tests.unit.operator.builders import job

DIGITS = job(evaluator=True)


def add(logs: Path, pod: str, text: str) -> None:
    with (logs / f"digits-{pod}.log").open("a") as log:
        log.write(text)


def lines(output: ProgramOutput) -> list[tuple[str, str]]:
    return [(task, line.text) for task, line in output.new(live=False)]


def test_the_chiefs_output_is_shown_as_it_comes(tmp_path: Path) -> None:
    output = ProgramOutput(tmp_path, DIGITS)
    assert lines(output) == []
    add(tmp_path, "worker-0-0", "of a worker\n")
    add(tmp_path, "chief-0-0", "begins\n 1/9")
    assert lines(output) == [("chief-0", "begins")]
    assert output.unfinished == " 1/9"
    add(tmp_path, "chief-0-0", "\r 9/9\nne")
    assert lines(output) == [("chief-0", " 9/9")]
    add(tmp_path, "chief-0-0", "xt")
    assert lines(output) == []
    assert [line.line.text for line in output.end(live=False)] == ["next"]


def test_the_output_of_a_new_process_continues_that_of_the_old_one(tmp_path: Path) -> None:
    output = ProgramOutput(tmp_path, DIGITS)
    add(tmp_path, "chief-0-0", "first\n 3/9")
    assert lines(output) == [("chief-0", "first")]
    add(tmp_path, "chief-0-1", "second\n")
    assert lines(output) == [("chief-0", " 3/9"), ("chief-0", "second")]


def test_a_run_that_is_resumed_does_not_show_again_what_it_has_shown(tmp_path: Path) -> None:
    add(tmp_path, "chief-0-0", "yesterday\n")
    add(tmp_path, "chief-0-1", "yesterday\n")
    output = ProgramOutput(tmp_path, DIGITS)
    add(tmp_path, "chief-0-0", "today\n")
    assert lines(output) == [("chief-0", "today")]


def test_the_output_of_all_tasks_comes_with_their_names(tmp_path: Path) -> None:
    output = ProgramOutput(tmp_path, DIGITS, all_tasks=True)
    for pod in ("evaluator-0-0", "worker-1-0", "worker-0-2", "chief-0-0"):
        add(tmp_path, pod, f"of {pod}\n 1/9")
    (tmp_path / "dtjob.log").write_text("of the reconciler\n")
    tasks = [task for task, _ in lines(output)]
    assert tasks == ["chief-0", "worker-0", "worker-1", "evaluator-0"]
    assert output.unfinished == ""


def test_a_letter_that_comes_in_two_pieces_is_whole(tmp_path: Path) -> None:
    output = ProgramOutput(tmp_path, DIGITS)
    log, letter = tmp_path / "digits-chief-0-0.log", "é".encode()
    log.write_bytes(letter[:1])
    assert lines(output) == []
    log.write_bytes(letter + b"\n")
    assert lines(output) == [("chief-0", "é")]


def test_an_error_is_shown_at_the_end_of_the_run_at_the_latest(tmp_path: Path) -> None:
    output = ProgramOutput(tmp_path, DIGITS)
    add(tmp_path, "chief-0-0", "Traceback (most recent call last):\nValueError: no data")
    assert lines(output) == []
    assert [line.line.text for line in output.end(live=False)] == [
        "Traceback (most recent call last):",
        "ValueError: no data",
    ]


def test_a_traceback_is_shown_with_the_frames_of_the_programs_own_files(tmp_path: Path) -> None:
    """Also if it comes in pieces, and in a job whose tasks lose no peer."""
    output = ProgramOutput(tmp_path, job("Default"))
    own = '  File "train.py", line 9, in <module>\n    model.fit(x, y)\n'
    package = '  File "/venv/lib/python3.11/site-packages/keras/src/trainer.py", line 5, in fit\n    raise error\n'
    add(tmp_path, "chief-0-0", f"Traceback (most recent call last):\n{own}{package[:90]}")
    found = lines(output)
    add(tmp_path, "chief-0-0", f"{package[90:]}ValueError: of shapes\n")
    expected = ["Traceback (most recent call last):", *own.splitlines(), "ValueError: of shapes"]
    assert [text for _, text in [*found, *lines(output)]] == expected
