# SPDX-License-Identifier: Apache-2.0
"""An hour of jobs that come and go on a real API server (`make soak-hour`): what the operator holds must not grow.

kwok runs the pods, at addresses of the loopback network. The chief of each job has a supervisor there. Of ten, nine are
silent: half of them accept a connection and never answer, and to the others no connection is made. Each minute jobs
end, are deleted and are applied, and workers fail. A new job whose supervisor answers must not wait for its first
report.
"""

import argparse
import asyncio
import contextlib
import os
import random
import signal
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aiohttp import web

from benchmarks.growth import grown
from benchmarks.operators.jobs import IMAGE, NAMESPACE, Shape, dtjob, ended, phase_of_dtjob
from benchmarks.operators.observed import Jobs, Watched
from benchmarks.operators.sides import Dtjob, usage_of
from benchmarks.operators.testbed import Testbed
from dtjob.local.processes.addresses import free_ports
from tools import binaries
from tools.cluster.rest import Api, ApiError, Object
from tools.programs import BENCHMARKS

POD_NETWORK = "127.128.0.1/9"
"""All of it is this machine."""
ANSWERING_ONE_IN = 10
AT_ONCE = 8
"""Jobs that are applied at the same time."""
FILL_SECONDS = 7200.0
"""Until all jobs run, beside much other work."""
CHANGES = 10
"""Jobs that end or are deleted in a minute, and workers that fail."""
ENOUGH_MINUTES = 3
"""In so many minutes, at least one new job with an answering supervisor runs."""
FIRST_REPORT_SECONDS = 60.0
"""In which a new job has told of its progress, on a busy machine."""
STEADY, RESTLESS = ("megabytes", "tasks"), ("sockets", "queue")
"""What the operator holds all the time, and what comes and goes within seconds."""
_TASKS = "tasks"
_COUNT_TASKS = f"""
import asyncio, signal
def count(*_):
    with open({_TASKS!r}, "w") as file:
        file.write(str(len(asyncio.all_tasks())))
signal.signal(signal.SIGUSR1, count)
"""

Row = dict[str, float]


class Supervisors:
    """What answers, or does not, at the status ports of jobs, in an event loop of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._hanging, self._dropping = self._listen(128), self._listen(0)
        self._do(asyncio.start_server(_hang, sock=self._hanging))
        # Nobody takes it from the queue of connections, which has no room for another one: the kernel drops what comes.
        self._filling = [socket.create_connection(self._dropping.getsockname())]
        self._sites: dict[str, web.AppRunner] = {}
        self._began = time.monotonic()

    def silent(self, number: int) -> int:
        """A port at which nobody answers, of either kind."""
        return int((self._hanging, self._dropping)[number % 2].getsockname()[1])

    def answer(self, job: Object, port: int) -> None:
        """Answer at this port for this job, as it is stored."""
        self._do(self._serve(job["metadata"]["name"], job["metadata"]["uid"], port)).result()

    def forget(self, names: Iterable[str]) -> None:
        """Answer for these jobs no more."""
        for name in names:
            if site := self._sites.pop(name, None):
                self._do(site.cleanup())

    async def _serve(self, name: str, uid: str, port: int) -> None:
        async def status(_: web.Request) -> web.Response:
            step = int(time.monotonic() - self._began)
            return web.json_response({"jobUid": uid, "task": "chief-0", "state": "Running", "step": step})

        app = web.Application()
        app.router.add_get("/status", status)
        self._sites[name] = web.AppRunner(app, access_log=None)
        await self._sites[name].setup()
        await web.TCPSite(self._sites[name], "0.0.0.0", port).start()

    def _do(self, work: Any) -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @staticmethod
    def _listen(backlog: int) -> socket.socket:
        listening = socket.create_server(("0.0.0.0", 0), backlog=backlog)
        listening.setblocking(False)
        return listening


async def _hang(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()  # until the operator has given up
    writer.close()


class ChiefsRun(Watched):
    """When the chief of each job was first seen to run."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, "pods")
        self.since: dict[str, float] = {}

    def take_in(self, kind: str, found: Object, now: float) -> None:
        """Only its first pod counts."""
        name, _, rest = found["metadata"]["name"].rpartition("-chief-")
        if rest == "0-0" and (found.get("status") or {}).get("phase") == "Running":
            self.since.setdefault(name, now)


class Told(Watched):
    """When the status of each job first told of its progress."""

    def __init__(self, api: Api) -> None:
        super().__init__(api, "dtjobs")
        self.since: dict[str, float] = {}

    def take_in(self, kind: str, found: Object, now: float) -> None:
        """Its progress comes from a report."""
        if (found.get("status") or {}).get("progress"):
            self.since.setdefault(found["metadata"]["name"], now)


class Counted(Dtjob):
    """The operator, which tells how much it holds."""

    def __init__(self) -> None:
        super().__init__(before=_COUNT_TASKS, arguments=(f"--metrics=127.0.0.1:{(port := free_ports(1)[0])}",))
        self._port = port

    def held(self, directory: Path) -> Row:
        """What it holds now. `directory` is where it runs."""
        assert self._process is not None
        pid = self._process.process.pid
        (directory / _TASKS).unlink(missing_ok=True)
        os.kill(pid, signal.SIGUSR1)
        with urllib.request.urlopen(f"http://127.0.0.1:{self._port}/metrics") as answer:
            metrics = answer.read().decode()
        depth = next(line.split()[1] for line in metrics.splitlines() if line.startswith("dtjob_workqueue_depth "))
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
        sockets = sum(_is_socket(one) for one in Path(f"/proc/{pid}/fd").iterdir())
        return {
            "megabytes": pages * os.sysconf("SC_PAGE_SIZE") / 1e6,
            "sockets": sockets,
            "tasks": int((directory / _TASKS).read_text()),
            "queue": float(depth),
            "cpu": usage_of(pid).cpu_seconds,
        }


class Hour:
    """The jobs of the hour, all of one shape. `pods` is how many pods there are at any time."""

    def __init__(self, api: Api, pods: int, shape: Shape) -> None:
        self._api, self._jobs, self._shape = api, pods // shape.pods, shape
        self._chance, self._number = random.Random(0), 0
        self._supervisors = Supervisors()
        self.answering: set[str] = set()

    def fill(self) -> None:
        """Apply all jobs at once, and wait until they run."""
        with Jobs(self._api, "dtjobs", phase_of_dtjob) as jobs:
            self.add(self._jobs)
            run = jobs.reached.setdefault("Running", {})
            jobs.wait(lambda: len(run) >= self._jobs, f"{self._jobs} jobs run", FILL_SECONDS)

    def add(self, number: int) -> None:
        """Apply so many new jobs."""
        first, self._number = self._number + 1, self._number + number
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(self._add, range(first, self._number + 1)))

    def _add(self, number: int) -> None:
        answers = number % ANSWERING_ONE_IN == 0
        port = free_ports(1)[0] if answers else self._supervisors.silent(number)
        stored = self._api.create("dtjobs", NAMESPACE, _job(f"job-{number}", port, self._shape))
        if answers:
            self.answering.add(stored["metadata"]["name"])
            self._supervisors.answer(stored, port)

    def change(self) -> int:
        """One minute of users and nodes; how many jobs are there."""
        stored = self._api.list("dtjobs", NAMESPACE)
        running = [job["metadata"]["name"] for job in stored if phase_of_dtjob(job) == "Running"]
        chosen = self._chance.sample(running, min(3 * CHANGES // 2, len(running)))
        ending, deleted, failing = (chosen[number::3] for number in range(3))
        for name in ending:
            self._end(name, "chief-0", 0)
        for name in deleted:
            self._api.delete("dtjobs", NAMESPACE, name)
        for name in failing:
            self._end(name, f"worker-{self._chance.randrange(self._shape.workers)}", 137)
        self._supervisors.forget(self.answering.intersection([*ending, *deleted]))
        self.answering.difference_update(ending, deleted)
        self.add(self._jobs - len(stored))
        return len(stored)

    def _end(self, job: str, task: str, code: int) -> None:
        """The present pod of this task ends."""
        for pod in self._api.list("pods", NAMESPACE, Dtjob().selector(job)):
            name = pod["metadata"]["name"]
            if name.rpartition("-")[0] == f"{job}-{task}":
                with contextlib.suppress(ApiError):  # it is gone already
                    self._api.patch("pods", NAMESPACE, name, ended(pod, code), "status")


def _is_socket(link: Path) -> bool:
    try:
        return str(link.readlink()).startswith("socket:")
    except FileNotFoundError:  # closed since
        return False


def _job(name: str, port: int, shape: Shape) -> Object:
    job = dtjob(name, shape)
    job["spec"] |= {
        "image": IMAGE,
        "program": {"entrypoint": "train.py"},
        "network": {"statusPort": port},
        "ttlSecondsAfterFinished": 60,
    }
    return job


def play(pods: int, shape: Shape, minutes: int) -> list[str]:
    """Play the hour, and print a row for each minute; what is wrong."""
    rows: list[Row] = []
    with Testbed(binaries.find(BENCHMARKS), POD_NETWORK) as bed:
        operator = Counted()
        operator.start(bed)
        try:
            hour = Hour(bed.api, pods, shape)
            began = time.monotonic()
            hour.fill()
            print(f"{pods} pods run after {time.monotonic() - began:.0f} s", flush=True)
            filled, old = time.monotonic(), set(hour.answering)
            with ChiefsRun(bed.api) as run, Told(bed.api) as told:
                for minute in range(1, minutes + 1):
                    jobs = hour.change()
                    time.sleep(max(0.0, filled + 60 * minute - time.monotonic()))
                    new = {name: since for name, since in told.since.items() if name not in old}
                    late = first_reports(run.since, new, hour.answering - old)
                    rows.append({"minute": minute, "jobs": jobs, **operator.held(bed.plane.directory),
                                 "reports": len(late), "latest": max(late, default=0.0)})  # fmt: skip
                    _say(rows)
        finally:
            operator.stop()
    return faults(rows)


def first_reports(run: dict[str, float], told: dict[str, float], waiting: Collection[str]) -> list[float]:
    """Seconds from when the chief of each new job ran to when the status told of its progress. For those of `waiting`
    that it does not tell of yet, until now."""
    now = time.monotonic()
    waited = [since - run[name] for name, since in told.items() if name in run]
    return waited + [now - run[name] for name in waiting if name in run and name not in told]


def faults(rows: Sequence[Row]) -> list[str]:
    """What grew, a late report, and no report for long: a new job that answers comes about each minute."""
    found = grown(rows, STEADY, slack=0) + grown(rows, RESTLESS)
    if (latest := rows[-1]["latest"]) > FIRST_REPORT_SECONDS:
        found.append(f"a job waited {latest:.0f} s for its first report")
    third = len(rows) // 3
    if third >= ENOUGH_MINUTES and rows[-1]["reports"] == rows[-third - 1]["reports"]:
        found.append(f"no new job has told of its progress in the last {third} minutes")
    return found


def _say(rows: Sequence[Row]) -> None:
    if len(rows) == 1:
        print(" ".join(f"{name:>9}" for name in rows[0]))
    print(" ".join(f"{value:>9.0f}" for value in rows[-1].values()), flush=True)


def main() -> None:
    """Exit with 1 if something grew, or a report was late or did not come."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=8, help="of each job, beside its chief")
    parser.add_argument("--minutes", type=int, default=60)
    options = parser.parse_args()
    for fault in (found := play(options.pods, Shape(options.workers), options.minutes)):
        print(fault)
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
