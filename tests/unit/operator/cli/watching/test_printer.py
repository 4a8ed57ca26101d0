# SPDX-License-Identifier: Apache-2.0
"""Lines of several tasks, on a terminal and elsewhere."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from dtjob.cli.watching.printer import READER_GONE, Printer
from tests.unit.operator.client.api_server import ApiServer
from tests.unit.operator.client.verbs.jobs import JOBS, PODS, RUNNING, job, pod, stamped


def test_colours_are_for_terminals() -> None:
    out = io.StringIO()
    Printer(out, coloured=True).line("worker-0", "a")
    assert out.getvalue() == "\x1b[36mworker-0     | \x1b[0ma\n"


@pytest.mark.parametrize("environ", [{"TERM": "dumb"}, {"NO_COLOR": "1"}], ids=str)
def test_a_terminal_without_colours_gets_none(monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    out = io.StringIO()
    monkeypatch.setattr(out, "isatty", lambda: True)
    Printer(out).line("worker-0", "a \x1b[31mred\x1b[0m")
    assert out.getvalue() == "worker-0     | a red\n"


def test_a_progress_bar_is_one_line_with_its_task() -> None:
    bar = "\b\b\r 1/52 \x1b[32m━\x1b[0m" + "\b" * 8 + "\r52/52 \x1b[32m━━\x1b[0m"
    for coloured, shown in (
        (True, "\x1b[36mworker-0     | \x1b[0m52/52 \x1b[32m━━\x1b[0m\n"),
        (False, "worker-0     | 52/52 ━━\n"),
    ):
        out = io.StringIO()
        Printer(out, coloured).line("worker-0", bar)
        assert out.getvalue() == shown


def test_following_ends_when_its_reader_has_gone(server: ApiServer, tmp_path: Path) -> None:
    stored = {**job(**RUNNING), "metadata": {**job()["metadata"], "resourceVersion": "1"}}
    server.answer(f"GET {JOBS}/digits", stored)
    server.answer(f"GET {PODS}/digits-worker-1-0/log", stamped(*((2, "x" * 1000) for _ in range(1000))))
    server.answer(f"GET {PODS}", {"items": [pod("worker-1")], "metadata": {"resourceVersion": "1"}})
    command = [sys.executable, "-m", "dtjob", "logs", "digits", "-f", "--kubeconfig", str(server.kubeconfig(tmp_path))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        said = running.stderr.read()
    assert running.returncode == READER_GONE
    assert "Traceback" not in said
