# SPDX-License-Identifier: Apache-2.0
"""All hazards, and the loop that begins and undoes them. At most two are active at once."""

import heapq
import time
from collections import Counter
from collections.abc import Callable
from itertools import count

from tests.chaos.support.hazards import jobs, nodes, pods
from tests.chaos.support.hazards.hazard import Done, Hazard, World
from tests.chaos.support.patience import is_outage
from tests.chaos.support.rounds import Say

HAZARDS = (
    Hazard(pods.pod_deleted, "", 2),
    Hazard(pods.container_killed, "", 2),
    Hazard(pods.supervisor_killed, "", 2),
    Hazard(pods.training_process_killed, "", 3),
    Hazard(pods.training_process_frozen, "frozen", 2),
    Hazard(pods.container_frozen, "frozen"),
    Hazard(pods.operator_killed, "operator", 2),
    Hazard(pods.operator_pod_deleted, "operator"),
    Hazard(pods.operator_frozen, "operator"),
    Hazard(pods.operators_clock_jumps, "operator's clock"),
    Hazard(pods.a_tasks_clock_jumps, "clock"),
    Hazard(jobs.job_suspended, "api"),  # a job must not stay suspended because an answer was lost
    Hazard(nodes.kubelet_killed, "kubelet"),
    Hazard(nodes.node_lost, "kubelet", 0.7),
    Hazard(nodes.containerd_killed, "containerd"),
    Hazard(nodes.api_server_killed, "api"),
    Hazard(nodes.api_server_frozen, "api", 0.7),
    Hazard(nodes.etcd_killed, "api"),
    Hazard(nodes.controllers_killed, "controllers", 0.5),
    Hazard(nodes.scheduler_killed, "scheduler", 0.5),
    Hazard(nodes.packets_dropped_between_nodes, "network", 1.5),
    Hazard(nodes.packets_dropped_to_the_api_server, "api", 0.7),
    Hazard(nodes.disk_full, "disk", 1.5),
)
AT_ONCE = 2
SHORTEST, LONGEST = 0.25, 1.75
"""Bounds of the time between two hazards, as parts of the mean."""


class Chaos:
    """Begins a hazard every `gap` seconds, on average. `done` counts the hazards by name."""

    def __init__(self, world: World, gap: float, say: Say) -> None:
        self._world, self._gap, self._say = world, gap, say
        self.done: Counter[str] = Counter()
        self._undone: list[tuple[float, int, Hazard, Done]] = []
        self._numbers = count()

    def go_on(self, seconds: float) -> None:
        """Begin hazards for this time, and undo all of them. The thread that calls this must live as long as the
        cluster, because programs that a thread has started end with the thread."""
        ended = time.monotonic() + seconds
        while (now := time.monotonic()) < ended:
            following = now + self._gap * self._world.chance.uniform(SHORTEST, LONGEST)
            if len(self._undone) < AT_ONCE:
                self._happen()
            self._undo_until(min(following, ended))
            for name in self._world.revive():
                self._say(f"{name} had ended, and is started again")
        while self._undone:
            self._undo(*heapq.heappop(self._undone)[2:])

    def wait(self, over: Callable[[], bool]) -> None:
        """Return when `over` holds. No hazard begins meanwhile. Programs that end by themselves are started again."""
        while not over():
            self._world.revive()
            time.sleep(1.0)

    def _happen(self) -> None:
        held = {hazard.holds for _, _, hazard, _ in self._undone} - {""}
        free = [hazard for hazard in HAZARDS if hazard.holds not in held]
        (hazard,) = self._world.chance.choices(free, [one.weight for one in free])
        try:
            done = hazard.do(self._world)
        except Exception as error:
            if not is_outage(error):  # else it is another hazard's doing
                self._world.sightings.broken.append(f"the test itself: {hazard.name}: {error!r}")
            return
        if done is None:
            return
        self.done[hazard.name] += 1
        self._say(f"{hazard.name}: {done.what}" + (f" for {done.seconds:.0f} s" if done.undo else ""))
        if done.undo:
            heapq.heappush(self._undone, (time.monotonic() + done.seconds, next(self._numbers), hazard, done))

    def _undo_until(self, moment: float) -> None:
        """Wait until this moment, and undo what is due before."""
        while self._undone and self._undone[0][0] <= moment:
            due, _, hazard, done = heapq.heappop(self._undone)
            time.sleep(max(0.0, due - time.monotonic()))
            self._undo(hazard, done)
        time.sleep(max(0.0, moment - time.monotonic()))

    def _undo(self, hazard: Hazard, done: Done) -> None:
        if done.undo:
            done.undo()
            self._say(f"{hazard.name}: {done.what} is over")
