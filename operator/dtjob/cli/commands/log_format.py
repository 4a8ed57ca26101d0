# SPDX-License-Identifier: Apache-2.0
"""How `dtjob operator` writes its log: `--log-level` and `--log-format`."""

import json
import logging
from datetime import UTC, datetime
from enum import StrEnum


class LogLevel(StrEnum):
    """The least severe lines that are written."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class LogFormat(StrEnum):
    """How a line is written."""

    TEXT = "text"
    LOGFMT = "logfmt"
    JSON = "json"


TEXT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class KeyedFormatter(logging.Formatter):
    """One line for each record, with the keys time, level, logger, message and, after an error, exception."""

    def __init__(self, chosen: LogFormat) -> None:
        """`chosen` is JSON or LOGFMT."""
        super().__init__()
        self._chosen = chosen

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        moment = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = {
            "time": moment.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["exception"] = self.formatException(record.exc_info)
        if self._chosen is LogFormat.JSON:
            return json.dumps(fields, ensure_ascii=False)
        free = ("message", "exception")
        return " ".join(
            f"{name}={json.dumps(value, ensure_ascii=False) if name in free else value}"
            for name, value in fields.items()
        )


def configure(level: LogLevel, chosen: LogFormat) -> None:
    """Set up the root logger, which writes to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter(TEXT) if chosen is LogFormat.TEXT else KeyedFormatter(chosen))
    logging.basicConfig(level=level.upper(), handlers=[handler])
