# SPDX-License-Identifier: Apache-2.0
"""Hazards to nodes, their network and disks, and to the control plane."""

import signal
from collections.abc import Callable

from tests.chaos.support.hazards.hazard import Done, World
from tests.chaos.support.kinds import KINDS
from tools.cluster.program import Program
from tools.node import network
from tools.node.machine import Machine

OUTAGES = (0, 3, 10, 20)
"""For how many seconds a killed program stays away."""


def _killed(world: World, program: Program, what: str = "", outages: tuple[int, ...] = OUTAGES) -> Done:
    return Done(what or program.name, world.take_away(program), world.chance.choice(outages))


def _machine(world: World) -> Machine:
    return world.chance.choice(world.bed.node.machines)


def kubelet_killed(world: World) -> Done:
    """kill -9, and back."""
    machine = _machine(world)
    return _killed(world, machine.kubelet.program, machine.name)


def node_lost(world: World) -> Done:
    """A kubelet is away for so long that the pods of its node are replaced. Their processes run on."""
    machine = _machine(world)
    return _killed(world, machine.kubelet.program, machine.name, (75, 100))


def containerd_killed(world: World) -> Done:
    """kill -9, and back; containers run on."""
    machine = _machine(world)
    return _killed(world, machine.containerd.program, machine.name)


def api_server_killed(world: World) -> Done:
    """kill -9, and back."""
    return _killed(world, world.bed.node.control_plane.program("kube-apiserver"))


def api_server_frozen(world: World) -> Done:
    """SIGSTOP, and SIGCONT later: its connections stay open, and no answer comes."""
    pid = world.bed.node.control_plane.program("kube-apiserver").process
    pid.send_signal(signal.SIGSTOP)
    return Done("kube-apiserver", lambda: pid.send_signal(signal.SIGCONT), world.chance.choice((3, 15, 40)))


def etcd_killed(world: World) -> Done:
    """kill -9, and back."""
    return _killed(world, world.bed.node.control_plane.program("etcd"), outages=(0, 3, 10))


def controllers_killed(world: World) -> Done:
    """kube-controller-manager: kill -9, and back."""
    return _killed(world, world.bed.node.control_plane.program("kube-controller-manager"))


def scheduler_killed(world: World) -> Done:
    """kill -9, and back."""
    return _killed(world, world.bed.node.control_plane.program("kube-scheduler"))


def packets_dropped_between_nodes(world: World) -> Done:
    """A part or all of the packets between the pods of the two nodes."""
    one, other = (machine.subnet.bridge for machine in world.bed.node.machines)
    rules = [f"-i {one} -o {other}", f"-i {other} -o {one}"]
    return _dropped(world, rules, world.chance.choice((0.1, 0.5, 1.0)), (5, 15, 40))


def packets_dropped_to_the_api_server(world: World) -> Done:
    """All packets from pods to the API server: the operator's connections stay open, and no answer comes."""
    return _dropped(world, [f"-s 10.244.0.0/16 -d {network.HOST} -p tcp"], 1.0, (5, 20, 45))


def _dropped(world: World, rules: list[str], share: float, seconds: tuple[int, ...]) -> Done:
    some = "" if share == 1.0 else f"-m statistic --mode random --probability {share} "

    def change(how: str) -> Callable[[], None]:
        def call() -> None:
            for rule in rules:
                words = f"iptables -w {how} FORWARD {rule} {some}-j DROP".split()
                world.bed.node.machines[0].namespaces.run(*words)

        return call

    change("-I")()
    return Done(f"{share:.0%}", change("-D"), world.chance.choice(seconds))


def disk_full(world: World) -> Done:
    """The volume to which one kind of job saves has no byte left."""
    kind = world.chance.choice(KINDS).name
    world.bed.disks.fill(kind)
    return Done(kind, lambda: world.bed.disks.free(kind), world.chance.choice((2, 10, 30)))
