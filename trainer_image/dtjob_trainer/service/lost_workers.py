# SPDX-License-Identifier: Apache-2.0
"""Ends the tasks of data workers that do not come back.

An epoch ends when all its tasks have ended. The dispatcher of TensorFlow 2.21 keeps a task for each data worker that it
has ever seen. A data worker that another one replaces gives its tasks to that one. If `data.replicas` has become
smaller, nobody does. No public function ends a task, so this says by gRPC what the lost data worker would say.
"""

import contextlib
import socket
import time
from collections.abc import Callable
from typing import Any

from dtjob_trainer.contract.task import host_of, port_of

GONE_SECONDS = 60.0
"""A data worker that nobody reaches for so long has no part in the epoch any more."""
LOOK_SECONDS = 2.0
"""How often the data workers are looked for."""
REACH_SECONDS = 1.0
"""A data worker is not reached if a connection takes longer."""
_TASK, _ITERATION = 4, 5
"""Numbers of fields of the message TaskDef."""


def connect(address: str, seconds: float = 5.0) -> socket.socket | None:
    """A connection to `host:port`. None if nobody listens, or if it takes longer."""
    with contextlib.suppress(OSError):
        return socket.create_connection((host_of(address), port_of(address)), seconds)
    return None


def reached(address: str) -> bool:
    """Whether somebody listens at `host:port`."""
    if (line := connect(address, REACH_SECONDS)) is not None:
        line.close()
    return line is not None


class LostWorkers:
    """The data workers of one dispatcher, as one of them sees them."""

    def __init__(self, dispatcher: str, reached: Callable[[str], bool] = reached) -> None:
        """`dispatcher`: its `host:port`."""
        import grpc

        # an answer has the Datasets of tasks, with their slices
        self._channel = grpc.insecure_channel(dispatcher, [("grpc.max_receive_message_length", -1)])
        self._reached, self._fails = reached, grpc.RpcError
        self._away: dict[str, float] = {}
        """Data workers that are away, and since when."""
        self._ended: dict[int, set[str]] = {}
        """Iteration to the data workers whose tasks were ended here."""

    def look(self) -> None:
        """End the tasks of data workers that are away for GONE_SECONDS. Nothing if the dispatcher does not answer."""
        with contextlib.suppress(self._fails):
            self._end_tasks_of_lost()

    def _end_tasks_of_lost(self) -> None:
        addresses = [dict(_fields(one))[1].decode() for _, one in self._call("GetWorkers", b"")]
        there = {address for address in addresses if self._reached(address)}
        now = time.monotonic()
        self._away = {one: self._away.get(one, now) for one in addresses if one not in there}
        for address, since in self._away.items():
            if now - since >= GONE_SECONDS:
                self._end_tasks(address, there)

    def _end_tasks(self, address: str, there: set[str]) -> None:
        from google.protobuf.wrappers_pb2 import Int64Value, StringValue

        worker = StringValue(value=address).SerializeToString()  # has the form of both messages without more
        for _, one in self._call("WorkerHeartbeat", worker):
            task = dict(_fields(one))
            ended = self._ended.setdefault(task[_ITERATION], set())
            if there - ended:  # otherwise nobody has what was not handed out yet
                progress = Int64Value(value=task[_TASK]).SerializeToString() + b"\x10\x01"  # completed: true
                self._call("WorkerUpdate", worker + b"\x12" + bytes([len(progress)]) + progress)
                ended.add(address)

    def _call(self, method: str, request: bytes) -> list[tuple[int, Any]]:
        """The fields of what the dispatcher answers."""
        return _fields(self._channel.unary_unary(f"/tensorflow.data.DispatcherService/{method}")(request, timeout=5))


def _fields(message: bytes) -> list[tuple[int, Any]]:
    """The numbers and values of the fields of a message of protobuf."""
    from google.protobuf.empty_pb2 import Empty
    from google.protobuf.unknown_fields import UnknownFieldSet

    return [(field.field_number, field.data) for field in UnknownFieldSet(Empty.FromString(message))]
