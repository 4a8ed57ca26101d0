# SPDX-License-Identifier: Apache-2.0
"""What an epoch has when data workers are killed, come back, come late or stay away, with real servers."""

import contextlib
import socket
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import tensorflow as tf

from dtjob_trainer.contract.task import DATA_SERVICE
from dtjob_trainer.service import dispatcher
from dtjob_trainer.service.dispatcher import Dispatcher
from dtjob_trainer.service.served import over_data_service

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
N = 600
AHEAD = 60
"""More than a data worker has of its own: what it maps at once, and what waits to be fetched."""
WORKER = """
import sys
import tensorflow as tf
service = tf.data.experimental.service
dispatcher, address = sys.argv[1:]
port = int(address.rpartition(":")[2])
server = service.WorkerServer(service.WorkerConfig(dispatcher, address, port, "grpc", heartbeat_interval_ms=100))
print("serves", flush=True)
server.join()
"""


def slowly(x: Any) -> Any:
    work = tf.linalg.matmul(tf.ones([200, 200]), tf.ones([200, 200]))
    return x + tf.cast(0.0 * tf.reduce_sum(work), tf.int64)


class Service:
    """A dispatcher in this process, and data workers as processes."""

    def __init__(self) -> None:
        with contextlib.ExitStack() as held:
            self.ports = [held.enter_context(socket.create_server(("", 0))).getsockname()[1] for _ in range(4)]
        self.address = f"localhost:{self.ports.pop()}"
        service = tf.data.experimental.service
        self._dispatcher = service.DispatchServer(service.DispatcherConfig(int(self.address[10:]), "grpc"))
        self._processes: dict[int, subprocess.Popen[str]] = {}
        self._seen_by_data_0 = Dispatcher(self.address)

    def start(self, *indices: int) -> None:
        """Start these data workers, and wait until they serve."""
        for index in indices:
            command = [sys.executable, "-c", WORKER, self.address, f"localhost:{self.ports[index]}"]
            self._processes[index] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for index in indices:
            printed = self._processes[index].stdout
            assert printed is not None
            assert printed.readline()

    def kill(self, *indices: int) -> None:
        """Kill these data workers."""
        for index in indices:
            process = self._processes.pop(index)
            process.kill()
            process.communicate()

    def look(self) -> None:
        """Look for lost data workers as data-0 does."""
        self._seen_by_data_0.end_tasks_of_lost(f"localhost:{self.ports[0]}")

    def end(self) -> None:
        """Kill them all."""
        self.kill(*self._processes)


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    monkeypatch.setattr(dispatcher, "GONE_SECONDS", 0.0)
    found = Service()
    monkeypatch.setenv(DATA_SERVICE, f"grpc://{found.address}")
    yield found
    found.end()


class Epoch:
    """The examples of one pass, read by a thread of its own."""

    def __init__(self, found: Any) -> None:
        self.seen: list[int] = []
        self._iterator, self._thread = iter(found), threading.Thread(target=self._read, daemon=True)

    def take(self, count: int) -> "Epoch":
        """Read so many, and no more yet."""
        self.seen += [int(next(self._iterator)) for _ in range(count)]
        return self

    def goes_on(self) -> bool:
        """Read on. Whether there is more after some time."""
        if not self._thread.ident:
            self._thread.start()
        self._thread.join(0.3)
        return self._thread.is_alive()

    def rest(self, service: Service) -> Counter[int]:
        """How often each example came in all, while data-0 looks for lost data workers."""
        while self.goes_on():
            service.look()
        return Counter(self.seen)

    def _read(self) -> None:
        self.seen += [int(value) for value in self._iterator]


def test_an_epoch_has_the_documented_examples_when_data_workers_are_lost_or_come_late(service: Service) -> None:
    """shuffle() takes all numbers at the beginning. A data worker that did so would lose half of an epoch."""
    dataset = over_data_service(tf.data.Dataset.range(N).shuffle(N).map(slowly))
    whole = Counter(range(N))

    service.start(0, 1)
    assert Epoch(dataset).rest(service) == whole, "nothing fails"

    epoch = Epoch(dataset).take(50)
    service.kill(1)
    service.start(1)
    found = epoch.rest(service)
    assert max(found.values()) == 1, "a killed one that comes back: no example twice"
    assert len(found) >= N - AHEAD

    epoch = Epoch(dataset).take(50)
    service.start(2)
    assert epoch.rest(service) == whole, "one more"
    epoch = Epoch(dataset).take(50)
    service.kill(1, 2)
    found = epoch.rest(service)
    assert max(found.values()) == 1, "two that stay away"
    assert len(found) >= N - 2 * AHEAD
    assert Epoch(dataset).rest(service) == whole, "the next epoch without them"


def test_an_epoch_waits_for_the_only_data_worker_that_could_go_on(service: Service) -> None:
    dataset = over_data_service(tf.data.Dataset.range(N).map(slowly))
    service.start(0, 1)
    epoch = Epoch(dataset).take(50)
    service.kill(1)
    service.look()
    service.kill(0)
    for _ in range(4):
        assert epoch.goes_on(), "examples that nobody has made"
        service.look()
    service.start(1)
    service.look()
    assert epoch.goes_on(), "this one has no part in the epoch any more"
    service.start(0)
    found = epoch.rest(service)
    assert max(found.values()) == 1
    assert len(found) >= N - 2 * AHEAD
