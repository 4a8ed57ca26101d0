# SPDX-License-Identifier: Apache-2.0
"""A job on this machine, as an object: `dtjob run` in a process of its own."""

import html
import json
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dtjob.client.errors import JobFailed

_SUCCEEDED = "Succeeded"


class LocalJob:
    """One job on this machine."""

    def __init__(self, file: Path, name: str, work_directory: Path | str = ".dtjob") -> None:
        self.name = name
        command = [sys.executable, "-m", "dtjob", "run", str(file), "-o", "json", "--work-dir", str(work_directory)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._summary: dict[str, Any] = {}
        self._lines: list[str] = []
        self._more = threading.Condition()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._read_lines, self._read_end)]
        for thread in self._threads:
            thread.start()

    @property
    def status(self) -> dict[str, Any]:
        """The summary that `dtjob run -o json` prints, empty while the job trains."""
        return self._summary

    def wait(self, timeout: float | None = None) -> dict[str, Any]:
        """Wait until the job has ended, and return its summary.

        Raises JobFailed if it has not succeeded, and TimeoutError after so many seconds.
        """
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"{self.name}: trains after {timeout:g} s") from None
        for thread in self._threads:
            thread.join()
        if self._summary.get("phase") != _SUCCEEDED:
            raise JobFailed(f"{self.name}: {self._why()}")
        return self._summary

    def logs(self, *, follow: bool = False) -> Iterator[str]:
        """What the chief's program prints, and what `dtjob run` tells. `follow`: until the job has ended."""
        at = 0
        while True:
            with self._more:
                while follow and at >= len(self._lines) and self._threads[0].is_alive():
                    self._more.wait(1.0)
                new = self._lines[at:]
            yield from new
            at += len(new)
            if not follow or (not new and not self._threads[0].is_alive()):
                return

    def metrics(self) -> dict[str, float]:
        """The numbers of the summary, empty while the job trains."""
        steps = self._summary.get("steps")
        found = {} if steps is None else {"step": float(steps)}
        return {**found, **{name: float(value) for name, value in (self._summary.get("metrics") or {}).items()}}

    def fetch(self, *paths: str, directory: Path | str = ".") -> list[Path]:
        """Copy files of a job that has ended into a directory. Paths are patterns below its checkpoints; left out, they
        are models. Raises JobFailed while the job trains."""
        if "runDirectory" not in self._summary:
            raise JobFailed(f"{self.name}: has not ended")
        top = Path(self._summary["runDirectory"]) / "checkpoints"
        found = [file for path in paths or ("*.keras",) for file in sorted(top.glob(path))]
        copied = []
        for file in found:
            target = Path(directory) / file.relative_to(top)
            target.parent.mkdir(parents=True, exist_ok=True)
            if file.is_dir():
                shutil.copytree(file, target, dirs_exist_ok=True)
            else:
                shutil.copy2(file, target)
            copied.append(target)
        return copied

    def stop(self) -> None:
        """Save the job and end it. The same job resumes."""
        self._process.send_signal(signal.SIGINT)

    def __repr__(self) -> str:
        return f"LocalJob({self.name})"

    def _repr_html_(self) -> str:
        """The last lines, in a notebook."""
        text = "\n".join([f"{self.name} on this machine", *self._lines[-6:]])
        return f"<pre>{html.escape(text)}</pre>"

    def _why(self) -> str:
        """Why it has not succeeded: of the summary, or the last line of a run that did not begin."""
        if not self._summary:
            return self._lines[-1].removeprefix("dtjob: ") if self._lines else "dtjob run has printed nothing"
        reason, message = (self._summary.get(name) for name in ("reason", "message"))
        return f"{self._summary['phase']}{f' ({reason})' if reason else ''}{f': {message}' if message else ''}"

    def _read_lines(self) -> None:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            with self._more:
                self._lines.append(line.rstrip("\n"))
                self._more.notify_all()
        with self._more:
            self._more.notify_all()

    def _read_end(self) -> None:
        assert self._process.stdout is not None
        text = self._process.stdout.read().strip()
        self._summary = json.loads(text.splitlines()[-1]) if text else {}
