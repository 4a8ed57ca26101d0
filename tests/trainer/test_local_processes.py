# SPDX-License-Identifier: Apache-2.0
"""ProcessCluster with real processes: a pod's life as the plan sees it, and nothing left after its end."""

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dtjob.controller.cluster import AlreadyExists, ClusterError, Stale
from dtjob.local.cluster import ProcessCluster
from dtjob.local.here import manifest_of
from dtjob.local.processes import leftovers
from dtjob.local.processes.addresses import Addresses
from dtjob.local.processes.command import Directories
from dtjob.objects import labels, topology
from dtjob.objects.pod.pod import pod
from dtjob.plan.seen import children
from dtjob.plan.seen.children import PodState, facts_of
from tests.unit.operator.builders import NOW, job

SLEEP = "import time; time.sleep(600)"
IGNORE_SIGTERM = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf', flush=True); time.sleep(600)"
)
START_CHILD = f"subprocess.Popen([sys.executable, '-c', '{SLEEP}'], start_new_session=True)"
WITH_CHILD = f"import subprocess, sys; print({START_CHILD}.pid, flush=True); {SLEEP}"


class World:
    """A cluster, what its watch has brought, and pods that run a line of Python."""

    def __init__(self, directory: Path) -> None:
        self.job = job()
        (directory / "logs").mkdir()
        self.directories = Directories(directory / "cluster.json", directory / "checkpoints", directory / "logs")
        self.seen: list[tuple[str, dict[str, Any]]] = []
        self._news = asyncio.Event()
        addresses = Addresses.choose(self.job)
        self.cluster = ProcessCluster(manifest_of(self.job), addresses, self.directories, self._watch)

    def _watch(self, type_: str, manifest: dict[str, Any]) -> None:
        self.seen.append((type_, manifest))
        self._news.set()

    async def until(self, reached: Callable[[], object]) -> None:
        """Wait until `reached` holds, looking again whenever the watch brings something."""
        while not reached():
            self._news.clear()
            await asyncio.wait_for(self._news.wait(), 30)

    def pod(self, code: str, task: int = 0, grace: int = 30) -> dict[str, Any]:
        manifest = pod(self.job, topology.tasks(self.job)[task], 0)
        container = manifest["spec"]["containers"][0]
        container["command"], container["args"] = ["python3", "-c", code], []
        manifest["spec"]["terminationGracePeriodSeconds"] = grace
        return manifest

    def stored(self, name: str) -> dict[str, Any] | None:
        return next((item for item in self.cluster.pods if item["metadata"]["name"] == name), None)

    async def output(self, name: str) -> str:
        """The pod's log, once there is some."""
        while not (text := self.directories.log(name).read_text()):
            await asyncio.sleep(0.01)
        return text


@pytest.fixture
async def world(tmp_path):
    made = World(tmp_path)
    yield made
    await made.cluster.stop(0)


async def test_a_pod_runs_and_its_end_is_seen_at_once(world):
    stored = await world.cluster.create(world.pod("print('hello'); raise SystemExit(3)"))
    assert facts_of(stored).container["state"].keys() == {"running"}
    name = stored["metadata"]["name"]
    await world.until(lambda: facts_of(world.stored(name)).end)
    end = facts_of(world.stored(name)).end
    assert (end["exitCode"], end["message"]) == (3, "hello")
    assert name not in world.cluster.running()


async def test_a_kill_is_a_signal(world):
    stored = await world.cluster.create(world.pod(SLEEP))
    name = stored["metadata"]["name"]
    os.kill(world.cluster.running()[name], signal.SIGKILL)
    await world.until(lambda: facts_of(world.stored(name)).end)
    assert facts_of(world.stored(name)).end["signal"] == signal.SIGKILL
    assert children.state_of(world.stored(name), NOW) is PodState.FAILED


async def test_children_of_a_killed_process_end_with_it(world):
    stored = await world.cluster.create(world.pod(WITH_CHILD))
    name = stored["metadata"]["name"]
    child = int(await world.output(name))
    os.kill(world.cluster.running()[name], signal.SIGKILL)
    await world.until(lambda: facts_of(world.stored(name)).end)
    assert child not in leftovers.find({"DTJOB_UID": world.job.metadata.uid})


async def test_delete_ends_the_process_and_then_the_pod(world):
    stored = await world.cluster.create(world.pod(SLEEP))
    name, uid = stored["metadata"]["name"], stored["metadata"]["uid"]
    await world.cluster.delete("Pod", "default", name, "another uid")
    assert name in world.cluster.running()
    await world.cluster.delete("Pod", "default", name, uid)
    assert "deletionTimestamp" in world.stored(name)["metadata"]
    await world.cluster.delete("Pod", "default", name, uid)  # again is fine
    await world.until(lambda: world.stored(name) is None)
    assert [type_ for type_, item in world.seen if item["kind"] == "Pod"][-1] == "DELETED"
    assert name not in world.cluster.running()


async def test_a_process_that_does_not_end_is_killed_after_its_grace(world):
    stored = await world.cluster.create(world.pod(IGNORE_SIGTERM, grace=0))
    name = stored["metadata"]["name"]
    await world.output(name)
    await world.cluster.delete("Pod", "default", name, stored["metadata"]["uid"])
    await world.until(lambda: world.stored(name) is None)
    ends = [facts_of(item).end for _, item in world.seen if item["kind"] == "Pod"]
    assert any(end and end.get("signal") == signal.SIGKILL for end in ends)


async def test_names_are_taken_once(world):
    stored = await world.cluster.create(world.pod(SLEEP))
    with pytest.raises(AlreadyExists) as error:
        await world.cluster.create(world.pod(SLEEP))
    assert error.value.existing["metadata"]["uid"] == stored["metadata"]["uid"]
    assert len(world.cluster.running()) == 1


async def test_a_status_is_written_against_the_version_it_was_read_at(world):
    old = world.cluster.job
    new = await world.cluster.write_status(old, {"phase": "Running"})
    assert new["status"] == world.cluster.job["status"] == {"phase": "Running"}
    with pytest.raises(Stale):
        await world.cluster.write_status(old, {"phase": "Failed"})


async def test_a_replaced_pod_loses_its_label(world):
    stored = await world.cluster.create(world.pod(SLEEP))
    name = stored["metadata"]["name"]
    await world.cluster.stop_serving("default", name, "another uid")
    assert labels.SERVING in labels.of(world.stored(name))
    await world.cluster.stop_serving("default", name, stored["metadata"]["uid"])
    assert labels.SERVING not in labels.of(world.stored(name))


async def test_stop_ends_everything_and_lets_nothing_begin(world):
    for task in range(3):
        await world.cluster.create(world.pod(SLEEP, task))
    assert len(world.cluster.running()) == 3
    await world.cluster.stop(30)
    assert world.cluster.running() == {}
    with pytest.raises(ClusterError):
        await world.cluster.create(world.pod(SLEEP, 1))


async def test_stop_kills_at_once_where_asked(world):
    stored = await world.cluster.create(world.pod(IGNORE_SIGTERM))
    await world.output(stored["metadata"]["name"])
    kill_now = asyncio.Event()
    kill_now.set()
    await world.cluster.stop(600, kill_now)
    assert world.cluster.running() == {}


async def test_a_program_that_is_not_there_is_refused_by_its_exit(world):
    stored = await world.cluster.create(world.pod("import no_such_module"))
    name = stored["metadata"]["name"]
    await world.until(lambda: facts_of(world.stored(name)).end)
    assert "No module named 'no_such_module'" in facts_of(world.stored(name)).end["message"]
