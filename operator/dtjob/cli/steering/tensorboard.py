# SPDX-License-Identifier: Apache-2.0
"""`dtjob tensorboard`: TensorBoard beside the checkpoints of a job, at a port of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dtjob.api.names import KIND
from dtjob.cli.steering.helper_pod import directory_of, running
from dtjob.client.cluster import Cluster
from dtjob.client.streams import forward

PORT = 6006


def command(directory: str) -> list[str]:
    """What runs in the pod. It listens to the pod alone."""
    return [
        *("python3", "-m", "tensorboard.main", "--host=127.0.0.1", f"--port={PORT}"),
        *(f"--logdir={directory.rstrip('/')}/events", "--reload_interval=10"),
    ]


def show(cluster: Cluster, name: str, port: int, say: Callable[[str], None], image: str | None = None) -> None:
    """Run TensorBoard until the user ends it. `port`: of this machine, 0 for a free one."""
    stored = cluster.get(KIND, name)
    with running(cluster, stored, command(directory_of(stored)), image) as pod:
        asyncio.run(forward(cluster, pod, PORT, port, lambda at: say(f"TensorBoard of {name}: http://127.0.0.1:{at}/")))
