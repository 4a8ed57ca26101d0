# SPDX-License-Identifier: Apache-2.0
"""Hazards to pods and their processes."""

import contextlib
import signal

from tests.chaos.support import clocks
from tests.chaos.support.bed import JOBS
from tests.chaos.support.hazards.hazard import Done, World
from tests.chaos.support.processes import Process, largest, of_container
from tools.cluster.rest import Object
from tools.node.node import directory

CONTAINER = "tensorflow"
OPERATOR = "operator"
JUMPS = (-7200, -300, -30, 30, 300, 7200)
"""Seconds by which a clock jumps."""


def _victim(world: World) -> Object | None:
    pods = sorted(world.sightings.alive(), key=lambda pod: str(pod["metadata"]["name"]))
    return world.chance.choice(pods) if pods else None


def _processes(world: World) -> tuple[str, list[Process]]:
    """The processes of a random training container, with its pod's name."""
    pod = _victim(world)
    return (pod["metadata"]["name"], of_container(pod, CONTAINER)) if pod else ("", [])


def _operator(world: World) -> tuple[Object | None, list[Process]]:
    for pod in world.sightings.operators.values():
        if "deletionTimestamp" not in pod["metadata"] and (found := of_container(pod, OPERATOR)):
            return pod, found
    return None, []


def _frozen(world: World, pod: str, processes: list[Process], seconds: tuple[int, ...]) -> Done:
    """SIGSTOP for these processes of a pod, and SIGCONT later."""

    def send(number: signal.Signals) -> None:
        for process in processes:
            process.send(number)

    send(signal.SIGSTOP)
    return Done(pod, lambda: send(signal.SIGCONT), world.chance.choice(seconds))


def pod_deleted(world: World) -> Done | None:
    """As by `kubectl delete pod`."""
    pod = _victim(world)
    if pod is None:
        return None
    name = pod["metadata"]["name"]
    world.bed.api.delete("pods", JOBS, name, uid=pod["metadata"]["uid"])
    return Done(name)


def container_killed(world: World) -> Done | None:
    """SIGKILL for all processes of a container at once."""
    name, found = _processes(world)
    for process in found:
        process.send(signal.SIGKILL)
    return Done(name) if found else None


def supervisor_killed(world: World) -> Done | None:
    """SIGKILL for the first process of a container."""
    name, found = _processes(world)
    for process in found[:1]:
        process.send(signal.SIGKILL)
    return Done(name) if found else None


def training_process_killed(world: World) -> Done | None:
    """SIGKILL for the process of a container that has the most memory."""
    name, found = _processes(world)
    if found:
        largest(found).send(signal.SIGKILL)
    return Done(name) if found else None


def training_process_frozen(world: World) -> Done | None:
    """SIGSTOP, and SIGCONT later."""
    name, found = _processes(world)
    return _frozen(world, name, [largest(found)], (1, 5, 15, 40)) if found else None


def container_frozen(world: World) -> Done | None:
    """SIGSTOP for each process of a container, including its supervisor, and SIGCONT later."""
    name, found = _processes(world)
    return _frozen(world, name, found, (5, 20, 60)) if found else None


def operator_killed(world: World) -> Done | None:
    """SIGKILL for the operator. The kubelet starts it again in the same pod."""
    pod, found = _operator(world)
    for process in found:
        process.send(signal.SIGKILL)
    return Done(pod["metadata"]["name"]) if pod else None


def operator_pod_deleted(world: World) -> Done | None:
    """The Deployment makes another pod."""
    pod, _ = _operator(world)
    if pod is None:
        return None
    world.bed.api.delete("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])
    return Done(pod["metadata"]["name"])


def operator_frozen(world: World) -> Done | None:
    """SIGSTOP, and SIGCONT later, when another operator may lead."""
    pod, found = _operator(world)
    return _frozen(world, pod["metadata"]["name"], found, (5, 20)) if pod else None


def operators_clock_jumps(world: World) -> Done | None:
    """The clock jumps, and jumps back later."""
    pod, _ = _operator(world)
    return _jump(world, pod) if pod else None


def a_tasks_clock_jumps(world: World) -> Done | None:
    """The clock jumps, and jumps back later."""
    pod = _victim(world)
    return _jump(world, pod) if pod else None


def _jump(world: World, pod: Object) -> Done:
    file, seconds = clocks.file_of(pod, directory()), world.chance.choice(JUMPS)
    with contextlib.suppress(FileNotFoundError):  # the pod has just gone
        file.write_text(f"{seconds}\n")

    def undo() -> None:
        with contextlib.suppress(FileNotFoundError):
            file.write_text("0\n")

    return Done(f"{pod['metadata']['name']} by {seconds} s", undo, world.chance.choice((10, 60)))
