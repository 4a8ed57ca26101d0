# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.contract.log_line: one event a line, whatever it says; readable by people and by what reads logfmt."""

import contextlib
import io
import json
import math
import re
from pathlib import Path

import pytest

from dtjob_trainer.contract import log_line

TIME = "2026-11-21T10:00:00.000Z"
PAIR = re.compile(r'([^\s="]+)=("(?:[^"\\]|\\.)*"|[^\s"]*)(?: |$)')


def parsed(line: str) -> dict[str, str]:
    """What a reader of logfmt makes of `line`; fails where any of it is left over."""
    assert PAIR.sub("", line) == "", line
    pairs = PAIR.findall(line)
    assert len({key for key, _ in pairs}) == len(pairs), line
    return {key: json.loads(value) if value.startswith('"') else value for key, value in pairs}


def test_a_line_is_for_people_too() -> None:
    values = {"loss": 0.412345678, "accuracy": 1.0}
    assert log_line.line("epoch 1/3", time=TIME, task="chief-0", step=120, values=values) == (
        f'time={TIME} level=info task=chief-0 step=120 message="epoch 1/3" loss=0.412346 accuracy=1'
    )
    assert log_line.line("no", time=TIME, level="error") == f'time={TIME} level=error message="no"'


def test_every_message_and_name_can_be_read_back() -> None:
    message = 'cannot "read"\n\tC:\\x = ü; level=error'
    values = {"my metric": 1e-7, "loss": 12345678.0, "a=b": -2.5, "step": 3.0, "": 4.0, "bad": math.nan}
    facts = {"exitCode": 1, "stepped": False, "exception": 'KeyError: "a b"\n'}
    line = log_line.line(message, time=TIME, step=0, facts=facts, values=values)
    assert "\n" not in line
    found = parsed(line)
    assert found == {
        "time": TIME, "level": "info", "step": "0", "message": message,
        "exitCode": "1", "stepped": "false", "exception": facts["exception"], "my_metric": "1e-07",
        "loss": "1.23457e+07", "a_b": "-2.5", "step_": "3", "_": "4", "bad": "nan",
    }  # fmt: skip


def test_a_line_is_written_in_one_piece() -> None:
    pieces: list[str] = []

    class Stream(io.StringIO):
        def write(self, text: str) -> int:
            pieces.append(text)
            return len(text)

    log_line.write(Stream(), "hello", task="worker-1")
    (piece,) = pieces
    assert piece.endswith("\n")
    assert parsed(piece[:-1])["task"] == "worker-1"


def test_a_line_that_cannot_be_written_is_lost_and_nothing_else() -> None:
    full = Path("/dev/full").open("w")  # noqa: SIM115 (closing it writes once more)
    log_line.write(full, "told to end")
    with contextlib.suppress(OSError):
        full.close()
    closed = io.StringIO()
    closed.close()
    log_line.write(closed, "told to end")


def test_json_has_what_logfmt_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(log_line.FORMAT, "json")
    facts, values = {"exitCode": 1, "exception": 'a "b"\n'}, {"loss": 0.412345678, "step": 3.0, "bad": math.nan}
    line = log_line.line("no", time=TIME, level="error", task="chief-0", step=7, facts=facts, values=values)
    assert "\n" not in line
    assert json.loads(line) == {
        "time": TIME, "level": "error", "task": "chief-0", "step": 7, "message": "no", **facts,
        "loss": 0.412346, "step_": 3.0, "bad": "nan",
    }  # fmt: skip
    assert line.startswith(f'{{"time": "{TIME}", "level": "error"')


def test_lines_below_the_level_are_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setenv(log_line.LEVEL, "warning")
    for level in log_line.LEVELS:
        log_line.write(stream, level, level=level)
    assert re.findall(r'message="(\w+)"', stream.getvalue()) == ["warning", "error"]
    monkeypatch.delenv(log_line.LEVEL)
    log_line.write(stream, "debug", level="debug")
    assert "debug" not in stream.getvalue()
