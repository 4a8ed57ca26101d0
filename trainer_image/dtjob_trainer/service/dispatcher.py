# SPDX-License-Identifier: Apache-2.0
"""What a data worker asks and tells the dispatcher by itself. TensorFlow has no public function for that.

A data worker notices when the dispatcher's process ends. A new dispatcher counts its tasks from the beginning. A data
worker that had tasks of the old one could take the new ones for these.

The first data worker ends the tasks of those that do not come back. An epoch ends when all its tasks have ended. The
dispatcher of TensorFlow 2.21 keeps a task for each data worker that it has ever seen. A data worker that another one
replaces gives its tasks to that one. If `data.replicas` has become smaller, nobody does.
"""

import contextlib
import threading
import time
from typing import Any

import grpc
from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet
from google.protobuf.wrappers_pb2 import Int64Value, StringValue

from dtjob_trainer.process.serving import listens

GONE_SECONDS = 60.0
"""A data worker that nobody reaches for so long has no part in the epoch any more."""
OPTIONS = (
    ("grpc.max_receive_message_length", -1),  # an answer has the Datasets of tasks, with their slices
    ("grpc.keepalive_time_ms", 20_000),  # a lost node closes no connection, but 60 s without an answer do
)
"""Of a connection to the dispatcher. The dispatcher allows so many pings only between calls."""


class Dispatcher:
    """A connection to one process of the dispatcher: the first one that answers."""

    def __init__(self, address: str) -> None:
        """`address`: its `host:port`. It is waited for."""
        self.ended = threading.Event()
        self._reached: dict[str, float] = {}
        """Data workers, and when each was reached last."""
        self._channel = grpc.insecure_channel(address, OPTIONS)
        grpc.channel_ready_future(self._channel).result()
        self._channel.subscribe(self._note)

    def _note(self, state: grpc.ChannelConnectivity) -> None:
        if state is not grpc.ChannelConnectivity.READY:
            self._channel.unsubscribe(self._note)
            self.ended.set()

    def greet(self) -> None:
        """Say something, so that the connection is kept."""
        with contextlib.suppress(grpc.RpcError):
            self._call("GetVersion")

    def end_tasks_of_lost(self, own: str) -> None:
        """End the tasks of data workers that are away for GONE_SECONDS. Nothing if the dispatcher does not answer.

        `own`: the address of this data worker. It has a part in each epoch, so there is one to go on.
        """
        now = time.monotonic()
        with contextlib.suppress(grpc.RpcError):
            for worker in self._call("GetWorkers"):
                address = _fields(worker)[1].decode()
                if address == own or listens(address, seconds=1.0):
                    self._reached[address] = now
                elif now - self._reached.setdefault(address, now) >= GONE_SECONDS:
                    self._end_tasks(address)

    def _end_tasks(self, address: str) -> None:
        worker = StringValue(value=address).SerializeToString()  # has the form of both messages without more
        for task in self._call("WorkerHeartbeat", worker):
            number = Int64Value(value=_fields(task)[4])  # task_id
            progress = number.SerializeToString() + b"\x10\x01"  # completed: true
            self._call("WorkerUpdate", worker + b"\x12" + bytes([len(progress)]) + progress)

    def _call(self, method: str, request: bytes = b"") -> list[Any]:
        """The values of the fields of what the dispatcher answers."""
        call = self._channel.unary_unary(f"/tensorflow.data.DispatcherService/{method}")
        return [field.data for field in UnknownFieldSet(Empty.FromString(call(request, timeout=5)))]


def _fields(message: bytes) -> dict[int, Any]:
    """The values of the fields of a message of protobuf, by number."""
    return {field.field_number: field.data for field in UnknownFieldSet(Empty.FromString(message))}
