# SPDX-License-Identifier: Apache-2.0
import io
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from select import select

from dtjob.local.display.screen import Screen, log_to, write_line
from tests.unit.operator.local.display.snapshots import report, snapshot


def test_lines_come_with_the_time():
    out = io.StringIO()
    Screen(out).say("training begins")
    assert out.getvalue() == "[   0.0 s] training begins\n"


def test_progress_is_printed_at_intervals():
    out = io.StringIO()
    screen = Screen(out)
    for step in (1, 2):
        screen.observe(snapshot([report("chief-0", step=step, totalSteps=10)]), False)
    lines = [line.partition("] ")[2] for line in out.getvalue().splitlines()]
    assert lines == ["training begins: 10 steps", "step 1 of 10 (10%)"]


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
        with screen.redrawn():
            screen.observe(snapshot([report("chief-0", step=1)]), False)
            os.close(master)
        write_line("the end", out)


def test_a_terminal_that_cannot_redraw_gets_lines(monkeypatch):
    """As Emacs' shell: rich shows a live view there when it is over."""
    monkeypatch.setenv("TERM", "dumb")
    master, slave = os.openpty()
    with os.fdopen(slave, "w") as out, os.fdopen(master, "rb") as terminal:
        screen = Screen(out)
        with screen.redrawn():
            assert screen.live is None
            screen.say("begins")
            assert b"begins" in terminal.readline()


def test_the_log_file_has_all_lines_and_each_error_is_printed_once(tmp_path):
    out = io.StringIO()
    screen = Screen(out)
    with log_to(tmp_path / "log", screen):
        logging.getLogger("x").info("quiet")
        for _ in range(2):
            logging.getLogger("x").error("loud\nand long")
    logging.getLogger("x").error("after")
    assert out.getvalue().count("loud") == 1
    assert "quiet" not in out.getvalue()
    kept = (tmp_path / "log").read_text()
    assert "quiet" in kept
    assert "after" not in kept
