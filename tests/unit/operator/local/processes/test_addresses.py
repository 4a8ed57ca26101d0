# SPDX-License-Identifier: Apache-2.0
import socket

import pytest

from dtjob.local.processes import addresses
from dtjob.local.processes.addresses import Addresses, free_ports, is_free
from dtjob.objects import topology
from tests.unit.operator.builders import job


def test_ports_are_free_different_and_below_the_ephemeral_range():
    ports = free_ports(20)
    assert len(set(ports)) == 20
    assert all(addresses.LOWEST_PORT <= port < addresses._ephemeral_start() for port in ports)


def test_a_port_with_a_listener_is_not_free():
    with socket.socket() as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)  # as gRPC does
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert not is_free(listening.getsockname()[1])


def test_too_few_free_ports_say_so(monkeypatch):
    monkeypatch.setattr(addresses, "is_free", lambda port: False)
    with pytest.raises(addresses.NoFreePorts, match="only 0 of 2"):
        free_ports(2)


def test_every_task_has_ports_of_its_own_and_the_cluster_spec_maps_to_them():
    digits = job(evaluator=True)
    chosen = Addresses.choose(digits)
    used = [port for ports in chosen.ports.values() for port in (ports.tensorflow, ports.status, ports.rendezvous)]
    assert len(set(used)) == 12
    local = chosen.cluster(topology.cluster_spec(digits))
    assert local["chief"] == [f"127.0.0.1:{chosen.ports['digits-chief-0'].tensorflow}"]
    assert local["worker"][1] == f"127.0.0.1:{chosen.ports['digits-worker-1'].tensorflow}"
    chief = topology.chief_task(digits)
    status = topology.address(digits, chief, digits.spec.network.status_port)
    assert chosen.map(status) == f"127.0.0.1:{chosen.status_port('digits-chief-0')}"
    rendezvous = topology.address(digits, chief, digits.spec.network.rendezvous_port)
    assert chosen.map(rendezvous) == f"127.0.0.1:{chosen.ports['digits-chief-0'].rendezvous}"


def test_an_address_outside_the_job_is_unchanged():
    assert Addresses.choose(job()).map("db.example:5432") == "db.example:5432"
