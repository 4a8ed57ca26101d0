# SPDX-License-Identifier: Apache-2.0
"""Sums and broadcasts among the tasks of a synchronous strategy. All tasks must call each function at the same step."""

import contextlib
from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import numpy.typing as npt
import tensorflow as tf

from dtjob_trainer.contract.task import Task

CHUNK_BYTES = 64 * 2**20
"""Most bytes that one broadcast moves at a time, so that a large model does not need several times its memory."""
REDUCED = (np.float32, np.float64, np.int64)
"""What tasks with GPUs sum as those without: of int32 TensorFlow says "Collective all-reduce does not support datatype
DT_INT32 on DEVICE_GPU" (its base_collective_executor.cc), and unsigned integers and booleans it reduces nowhere."""
WORD = np.dtype(np.int64)
"""In which bytes are exchanged, bit for bit."""
GROUP_KEY = 0x64746A62
"""Names the tasks' host memories to TensorFlow, which counts the keys of its own groups from 1."""
_exchanges = count(1)
"""Numbers the exchanges of this process; they are the same ones in every task."""


class Group:
    """The replicas of a strategy, as one of its tasks sees them."""

    def __init__(self, strategy: Any, task: Task | None) -> None:
        self.strategy = strategy
        self.anew = task.anew if task is not None else "choose another directory"
        """What a user does to train without the checkpoints that are there, in words."""
        self.replicas: int = strategy.num_replicas_in_sync
        """Replicas of all tasks together."""
        self.tasks = 1
        """Tasks that train together."""
        self.index = 0
        """This task's place among them; 0 is the chief task."""
        self.members: tuple[str, ...] = ()
        """The ids of the tasks that train together, if there are several."""
        if task is not None and task.traits.collective and task.in_cluster:
            self.members = tuple(task.members)
            self.tasks, self.index = len(task.members), task.members.index(task.id)
        self.local = self.replicas // self.tasks
        """Replicas of this task."""
        self.first_replica = self.index * self.local
        """Number of this task's first replica among all."""

    def sum(self, vector: npt.NDArray[Any], key: int | None = None) -> npt.NDArray[Any]:
        """The sum of every task's `vector` (of one of REDUCED; same shape in all tasks).

        - key: numbers the exchange if it has no place among the others of this process, as in another thread.
        """
        if vector.dtype not in REDUCED:
            raise TypeError(
                f"not every strategy sums {vector.dtype}; use one of {', '.join(t.__name__ for t in REDUCED)}"
            )
        if self.tasks == 1 or not vector.size:
            return vector
        with tf.device("CPU:0"):
            flat = tf.constant(vector.ravel())
        summed: npt.NDArray[Any] = self._sum_tasks(flat, key).numpy()
        return summed.reshape(vector.shape)

    def sum_each(self, arrays: Sequence[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """For each of `arrays` (of one type; same shapes in all tasks) the sum of every task's, in one exchange."""
        if not arrays:
            return []
        joined = self.sum(np.concatenate([array.ravel() for array in arrays]))
        parts = np.split(joined, np.cumsum([array.size for array in arrays])[:-1])
        return [part.reshape(array.shape) for part, array in zip(parts, arrays, strict=True)]

    def of_each(self, mine: npt.NDArray[Any], key: int | None = None) -> npt.NDArray[Any]:
        """Every task's vector, a row each: [size] → [tasks, size]. `key`: as in `sum`."""
        table = np.zeros((self.tasks, mine.size), mine.dtype)
        table[self.index] = mine
        return self.sum(table, key)

    def leave_together(self) -> None:
        """Return when every task has come here too: one that ended before would break its last sum off for the others.

        What fails here is of no account: then the others are gone already, each with all that it needed.
        """
        if self.tasks > 1:
            with contextlib.suppress(tf.errors.OpError):
                self.sum(np.zeros(1))

    def broadcast(self, data: npt.NDArray[np.uint8] | None, size: int) -> npt.NDArray[np.uint8]:
        """The chief task's `data` of `size` bytes, bit for bit, in every task; the others pass None."""
        if self.tasks == 1 or not size:
            return np.empty(0, np.uint8) if data is None else data
        received = np.empty(size, np.uint8) if data is None else data
        for start in range(0, size, CHUNK_BYTES):
            chunk = received[start : start + CHUNK_BYTES]
            words = np.zeros(-(-chunk.size // WORD.itemsize), WORD)
            if data is not None:
                words.view(np.uint8)[: chunk.size] = chunk
                self._send(words)
            else:
                chunk[:] = self._receive(words.size).view(np.uint8)[: chunk.size]
        return received

    def gather(self, rows: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
        """Every replica's row of bytes, in the order of replicas: local rows [local, size] → [replicas, size]."""
        if self.tasks == 1:
            return rows
        size = rows.shape[1]
        words = np.zeros((self.replicas, -(-size // WORD.itemsize)), WORD)
        words.view(np.uint8)[self.first_replica : self.first_replica + self.local, :size] = rows
        return np.ascontiguousarray(self.sum(words).view(np.uint8)[:, :size])

    def _sum_tasks(self, vector: Any, key: int | None) -> Any:
        """The sum in the host's memory: an operation by itself, as to trace a function takes as long as twenty sums."""
        with tf.device("CPU:0"):
            return tf.raw_ops.CollectiveReduceV2(
                input=vector,
                group_size=self.tasks,
                group_key=GROUP_KEY,
                instance_key=next(_exchanges) if key is None else key,
                ordering_token=[],
                merge_op="Add",
                final_op="Id",
            )

    def _send(self, words: npt.NDArray[Any]) -> None:
        """Give the other tasks `words`, in the host's memory."""
        with tf.device("CPU:0"):
            tf.raw_ops.CollectiveBcastSendV2(
                input=words, group_size=self.tasks, group_key=GROUP_KEY, instance_key=next(_exchanges)
            )

    def _receive(self, count: int) -> npt.NDArray[Any]:
        """What the chief task sends: so many words."""
        with tf.device("CPU:0"):
            found = tf.raw_ops.CollectiveBcastRecvV2(
                group_size=self.tasks, group_key=GROUP_KEY, instance_key=next(_exchanges), shape=[count], T=tf.int64
            )
        return np.asarray(found)
