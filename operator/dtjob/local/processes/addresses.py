# SPDX-License-Identifier: Apache-2.0
"""The loopback addresses that stand for the tasks' host names, chosen once for the life of a run."""

import random
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from dtjob.api.job import Job
from dtjob.objects import topology

HOST = "127.0.0.1"
LOWEST_PORT = 15000
EPHEMERAL_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
DEFAULT_EPHEMERAL_START = 32768
TRIES = 1000


class NoFreePorts(Exception):
    """No free port could be found below the ephemeral range."""


@dataclass(frozen=True)
class Ports:
    """The ports of one task; those of the rendezvous and of the data service are used at the chief task."""

    tensorflow: int
    status: int
    rendezvous: int
    data: int


@dataclass(frozen=True)
class Addresses:
    """Where each task of one job listens on this machine, by host name."""

    job: Job
    ports: dict[str, Ports]

    @classmethod
    def choose(cls, job: Job) -> "Addresses":
        """Free ports for every task. Raises NoFreePorts."""
        hostnames = [topology.hostname(job, task) for task in topology.all_tasks(job)]
        free = iter(free_ports(4 * len(hostnames)))
        return cls(job, {hostname: Ports(*(next(free) for _ in range(4))) for hostname in hostnames})

    def map(self, address: str) -> str:
        """The loopback address that stands for `host:port` of a task; any other address as it is."""
        scheme, slashes, place = address.rpartition("//")
        host, _, port = place.rpartition(":")
        ports = self.ports.get(host.split(".")[0])
        if ports is None:
            return address
        network = self.job.spec.network
        here = {network.rendezvous_port: ports.rendezvous, network.status_port: ports.status}
        here[network.data_port] = ports.data
        return f"{scheme}{slashes}{HOST}:{here.get(int(port), ports.tensorflow)}"

    def cluster(self, spec: dict[str, list[str]]) -> dict[str, list[str]]:
        """The cluster spec with loopback addresses."""
        return {role: [self.map(address) for address in hosts] for role, hosts in spec.items()}

    def status_port(self, hostname: str) -> int:
        """The status port of the task with this host name; raises KeyError for a stranger."""
        return self.ports[hostname].status


def free_ports(count: int) -> list[int]:
    """`count` different ports that nobody listens on, none in the ephemeral range. Raises NoFreePorts.

    An ephemeral port may be taken by any outgoing connection between two attempts, and TF_CONFIG must not change.
    """
    found: list[int] = []
    ports = candidates()
    for port in random.sample(ports, min(TRIES, len(ports))):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    if len(found) < count:
        raise NoFreePorts(f"only {len(found)} of {count} ports are free on {HOST} below the ephemeral range")
    return found


def candidates() -> range:
    """The ports to choose from: those below the ephemeral range that no well-known server uses."""
    return range(LOWEST_PORT, max(_ephemeral_start(), LOWEST_PORT + TRIES))


def is_free(port: int) -> bool:
    """Whether a server could bind this port on every address, as TensorFlow's does."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        # Without SO_REUSEPORT: gRPC sets it, and would share the port with another job's gRPC server.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def _ephemeral_start() -> int:
    try:
        fields: Iterable[str] = EPHEMERAL_RANGE.read_text().split()
        return int(next(iter(fields)))
    except (OSError, ValueError, StopIteration):
        return DEFAULT_EPHEMERAL_START
