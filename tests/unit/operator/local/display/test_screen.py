# SPDX-License-Identifier: Apache-2.0
import io
import logging
import os
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from select import select

from dtjob.local.display.program_output import ProgramOutput
from dtjob.local.display.screen import Screen, log_to, write_line
from tests.unit.operator.builders import job
from tests.unit.operator.local.display.snapshots import report, snapshot


def told(screen: Screen, out: io.StringIO) -> list[str]:
    """What is shown by then, without the times."""
    with screen.shown():
        pass
    return [line.partition("] ")[2] for line in out.getvalue().splitlines()]


def test_lines_come_with_the_time():
    out = io.StringIO()
    screen = Screen(out)
    with screen.shown():
        screen.say("training begins")
    assert re.fullmatch(r"\[ *\d+\.\d s\] training begins\n", out.getvalue())


def test_progress_is_told_when_nothing_else_was_for_some_time(monkeypatch):
    monkeypatch.setattr("dtjob.local.display.screen.PROGRESS_LINE_SECONDS", 0.0)
    out = io.StringIO()
    screen = Screen(out)
    for step in (1, 2):
        screen.observe(snapshot([report("chief-0", step=step, totalSteps=10)]), False)
    assert told(screen, out) == ["training begins: 10 steps"], "there is something else to tell"
    screen.observe(snapshot([report("chief-0", step=3, totalSteps=10)]), False)
    assert told(screen, out)[1:] == ["step 3 of 10 (30%)"]


def test_the_programs_lines_come_before_dtjobs(tmp_path):
    """A traceback, and then what dtjob does about it."""
    out = io.StringIO()
    screen = Screen(out, ProgramOutput(tmp_path, job()))
    with screen.shown():
        (tmp_path / "digits-chief-0-0.log").write_text("\x1b[31mValueError\x1b[0m: no data\n 3/9")
        screen.say("chief-0 failed")
    lines = out.getvalue().splitlines()
    assert lines[0] == "ValueError: no data"
    assert "chief-0 failed" in lines[1]
    assert lines[2] == " 3/9", "the end of a run ends its last line"


def test_a_reader_that_does_not_read_does_not_stop_the_run(tmp_path):
    read, write = os.pipe()
    with os.fdopen(write, "w") as out, ThreadPoolExecutor() as readers:
        screen = Screen(out, ProgramOutput(tmp_path, job()))
        with screen.shown():
            (tmp_path / "digits-chief-0-0.log").write_text("x" * 99 + "\n" + "y\n" * 200_000)
            while select([], [out], [], 0.1)[1]:
                continue
            screen.say("the run goes on")
            screen.observe(snapshot(), False)
            with os.fdopen(read) as source:
                lines = readers.submit(lambda: [next(source) for _ in range(200_001)])
                assert lines.result()[-1] == "y\n"


def test_a_reader_that_went_is_no_error():
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as out:
        write_line("to nobody", out)
        write_line("again", out)


def test_a_full_disk_is_no_error():
    with Path("/dev/full").open("w") as out:
        write_line("to nobody", out)
        write_line("again", out)


def test_a_pipe_that_does_not_block_loses_nothing():
    read, write = os.pipe()
    os.set_blocking(write, False)
    lines = [str(number) * 10_000 for number in range(30)]
    with ThreadPoolExecutor() as readers, os.fdopen(read) as source:
        with os.fdopen(write, "w") as out:
            while select([], [out], [], 0)[1]:
                os.write(write, b"x" * 4096)  # full: the next write has to wait for a reader
            read_all = readers.submit(source.read)
            for line in lines:
                write_line(line, out)
        assert read_all.result().lstrip("x").splitlines() == lines


def test_a_terminal_that_went_is_no_error(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as out:
        monkeypatch.setattr("sys.stdout", out)
        screen = Screen(out)
        with screen.shown():
            screen.observe(snapshot([report("chief-0", step=1)]), False)
            os.close(master)
        write_line("the end", out)


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch):
    """As Emacs' shell: rich shows a live view there when it is over."""
    monkeypatch.setenv("TERM", "dumb")
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as out, os.fdopen(master, "rb") as terminal:
        screen = Screen(out)
        with screen.shown():
            screen.say("begins")
            assert b"begins" in terminal.readline()


def test_the_log_file_has_all_lines_and_each_error_is_printed_once(tmp_path):
    out = io.StringIO()
    screen = Screen(out)
    with log_to(tmp_path / "log", screen), screen.shown():
        logging.getLogger("x").info("quiet")
        for _ in range(2):
            logging.getLogger("x").error("loud\nand long")
    logging.getLogger("x").error("after")
    assert out.getvalue().count("loud") == 1
    assert "quiet" not in out.getvalue()
    kept = (tmp_path / "log").read_text()
    assert "quiet" in kept
    assert "after" not in kept
