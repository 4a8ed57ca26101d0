# SPDX-License-Identifier: Apache-2.0
"""`--log-level` and `--log-format`: each line has all that a collector of logs needs."""

import json
import logging
import sys

import pytest

from dtjob.cli.commands.log_format import KeyedFormatter, LogFormat, LogLevel

MESSAGE = 'pod "a"\nfailed'


def record(exc_info: object = None) -> logging.LogRecord:
    made = logging.LogRecord("dtjob.kube", logging.WARNING, "f.py", 1, "%s", (MESSAGE,), exc_info)  # type: ignore[arg-type]
    made.created = 0.25
    return made


def test_json_has_each_key_once() -> None:
    assert json.loads(KeyedFormatter(LogFormat.JSON).format(record())) == {
        "time": "1970-01-01T00:00:00.250Z",
        "level": "warning",
        "logger": "dtjob.kube",
        "message": MESSAGE,
    }


def test_logfmt_quotes_the_message() -> None:
    line = KeyedFormatter(LogFormat.LOGFMT).format(record())
    assert line == f"time=1970-01-01T00:00:00.250Z level=warning logger=dtjob.kube message={json.dumps(MESSAGE)}"


@pytest.mark.parametrize("chosen", [LogFormat.JSON, LogFormat.LOGFMT])
def test_an_exception_stays_in_the_same_line(chosen: LogFormat) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        line = KeyedFormatter(chosen).format(record(sys.exc_info()))
    assert "\n" not in line
    assert "ValueError: no" in line


def test_each_level_is_one_of_logging() -> None:
    assert all(isinstance(logging.getLevelName(level.upper()), int) for level in LogLevel)
