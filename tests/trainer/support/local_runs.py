# SPDX-License-Identifier: Apache-2.0
"""Starts `dtjob run` as a user does, finds its processes by their environment, and disturbs them."""

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import yaml

from dtjob.manifests.job_file import read_manifest
from tests.own_ports import DTJOB

ROOT = Path(__file__).resolve().parents[3]
WAIT_SECONDS = 150.0
"""A hang is a failure; far above what anything here takes."""

Statuses = Mapping[str, Mapping[str, Any]]


def manifest(example: str, file: Path, epochs: int, **spec: Any) -> Path:
    """One of the examples with fewer epochs and blocks of the spec replaced, written to `file`."""
    job = read_manifest(ROOT / "examples" / example)
    program = job["spec"]["program"]
    others = [one for one in program.get("args", []) if not one.startswith("--epochs=")]
    program["args"] = [f"--epochs={epochs}", *others]
    job["spec"]["failurePolicy"] = {"maxRestartsWithoutProgress": 10, "backoff": {"initialSeconds": 0}}
    job["spec"].update(spec)
    file.write_text(yaml.safe_dump(job))
    return file


def written_job(file: Path, name: str, **spec: Any) -> Path:
    """A job with this spec, written to `file`."""
    head = {"apiVersion": "training.dtjob.dev/v1beta1", "kind": "DistributedTrainingJob", "metadata": {"name": name}}
    file.write_text(yaml.safe_dump({**head, "spec": spec}))
    return file


def send_signal(processes: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each of these processes that is still there.

    `LocalRun.processes` lists short-lived children too, so one of them may have ended since.
    """
    for pid in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


class LocalRun:
    """One `dtjob run -o json` and what its supervisors say."""

    def __init__(
        self, file: Path, work_directory: Path, *options: str, output: Path | None = None, directory: Path = ROOT
    ) -> None:
        """Start it in `directory`.

        `output`: where all that it prints goes, for a run so long that a pipe which nobody reads would fill.
        """
        self._mark = f"{work_directory}/".encode()
        path = os.pathsep.join([str(ROOT / "operator"), str(ROOT / "trainer_image"), os.environ.get("PYTHONPATH", "")])
        command = [*DTJOB, "run", str(file), "--work-dir", str(work_directory), "-o", "json"]
        with output.open("w") if output else contextlib.nullcontext(subprocess.PIPE) as printed:
            self.process = subprocess.Popen(
                [*command, *options],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": path},
                stdout=printed,
                stderr=printed,
                text=True,
            )
        self.told = ""

    def __enter__(self) -> "LocalRun":
        return self

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind, also where a test failed."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        while left := self.processes():  # a supervisor may have started one more meanwhile
            send_signal(left, signal.SIGKILL)

    def processes(self) -> dict[int, dict[str, str]]:
        """Every process of this run below dtjob, with its environment; zombies have none and are not here."""
        found = {}
        for entry in Path("/proc").iterdir():
            if not entry.name.isdecimal():
                continue
            with contextlib.suppress(OSError):
                raw = (entry / "environ").read_bytes()
                if b"DTJOB_CLUSTER_FILE=" + self._mark in raw:
                    pairs = (item.decode(errors="replace").partition("=") for item in raw.split(b"\0") if item)
                    found[int(entry.name)] = {name: value for name, _, value in pairs}
        return found

    def statuses(self) -> dict[str, dict[str, Any]]:
        """Task id to `/status` of every supervisor that answers."""
        found = {}
        for port in {environment["DTJOB_STATUS_PORT"] for environment in self.processes().values()}:
            with contextlib.suppress(OSError, ValueError):
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/status", timeout=2) as answer:
                    status = json.load(answer)
                found[status["task"]] = status
        return found

    def wait_until(
        self, reached: Callable[[Statuses], bool], what: str, seconds: float = WAIT_SECONDS
    ) -> dict[str, dict[str, Any]]:
        """Wait until the statuses fulfil `reached`, `seconds` at most; fails where dtjob ends before."""
        deadline = time.monotonic() + seconds
        while True:
            statuses = self.statuses()
            if reached(statuses):
                return statuses
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                out, err = self.process.communicate()
                raise AssertionError(f"never came to {what}: {statuses}\n{out}\n{err}")
            time.sleep(0.05)

    def wait_for_step(self, step: int, task: str = "chief-0") -> dict[str, dict[str, Any]]:
        """Wait until `task` trains and has done `step`."""

        def reached(statuses: Statuses) -> bool:
            status = statuses.get(task, {})
            return status.get("state") == "training" and (status.get("step") or 0) >= step

        return self.wait_until(reached, f"step {step} of {task}")

    def end(self, seconds: float = WAIT_SECONDS) -> tuple[int, dict[str, Any]]:
        """Wait for the end, `seconds` at most. The exit code, and the summary (empty where none was printed)."""
        out, self.told = self.process.communicate(timeout=seconds)
        return self.process.returncode, json.loads(out) if out.strip() else {}

    def wait_until_nothing_is_left(self) -> None:
        """Wait until no process of this run is there any more."""
        deadline = time.monotonic() + WAIT_SECONDS
        while left := self.processes():
            assert time.monotonic() < deadline, f"processes {list(left)} were left behind"
            time.sleep(0.05)


def weights(model: str) -> dict[str, np.ndarray[Any, Any]]:
    """Every array in a saved model, by its path in the file."""
    found: dict[str, np.ndarray[Any, Any]] = {}

    def keep(name: str, item: object) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = np.array(item)

    with zipfile.ZipFile(model) as archive, h5py.File(BytesIO(archive.read("model.weights.h5"))) as file:
        file.visititems(keep)
    return found


def assert_identical(model: str, other: str) -> None:
    """Two saved models hold the same bits."""
    one, two = weights(model), weights(other)
    assert one.keys() == two.keys()
    assert one
    for name in one:
        np.testing.assert_array_equal(one[name], two[name], err_msg=name)
