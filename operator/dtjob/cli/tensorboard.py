# SPDX-License-Identifier: Apache-2.0
"""`dtjob tensorboard`: TensorBoard beside the checkpoints of a job, at a port of this machine."""

import asyncio
import contextlib
import socket
from collections.abc import Callable

from dtjob.api.names import KIND
from dtjob.bad_input import BadInput
from dtjob.client.cluster import Cluster
from dtjob.client.errors import NotDone, NotReached, Refused, Unavailable
from dtjob.client.verbs.helper_pod import directory_of, ended, running, typed

PORT = 6006
LOOK_SECONDS = 5.0
"""How often it is looked whether TensorBoard still runs. It ends if the image lacks it, or after a day."""
ASK_SECONDS = 0.5
"""How often it is asked for an answer while it starts, which takes some seconds."""


def show(
    cluster: Cluster,
    name: str,
    port: int,
    begin: Callable[[], None],
    say: Callable[[str], None],
    image: str | None = None,
) -> None:
    """Run TensorBoard until the user ends it.

    `port`: of this machine, 0 for a free one. `begin` is called before a pod is made. Raises BadInput for a taken port,
    Refused if there can be nothing to show, and NotDone if TensorBoard ends by itself.
    """
    stored = cluster.get(KIND, name)
    _check_is_free(port)
    begin()
    events = f"{directory_of(typed(stored)).rstrip('/')}/events"
    command = [
        *("python3", "-m", "tensorboard.main", "--host=127.0.0.1", f"--port={PORT}"),  # of the pod alone
        *(f"--logdir={events}", "--reload_interval=10"),
    ]
    with running(cluster, stored, command, image) as pod:
        if stored["spec"].get("tensorBoard") is None:
            _check_has_events(cluster, name, pod, events)
        asyncio.run(_forward(cluster, pod, port, lambda at: say(f"TensorBoard of {name}: http://127.0.0.1:{at}/")))


def _check_has_events(cluster: Cluster, name: str, pod: str, events: str) -> None:
    """Raise Refused if the program of a job that writes no events by itself has written none."""
    from dtjob.client.verbs.fetch import in_pod, sizes

    if not sizes(in_pod(cluster, pod), events):
        how = "to see a job there, set `spec.tensorBoard: {}` before it starts"
        raise Refused(f"{name}: has written nothing for TensorBoard; {how}")


async def _forward(cluster: Cluster, pod: str, port: int, ready: Callable[[int], None]) -> None:
    """Forward the port until the user ends it. `ready` gets the local port once TensorBoard answers there.

    Raises NotDone if TensorBoard ends before.
    """
    from dtjob.client.streams import answer, forward  # its import takes a while

    async def listening(at: int) -> None:
        while True:
            with contextlib.suppress(NotReached, Unavailable):
                await answer(cluster, pod, PORT, "/data/environment")  # a short page
                break
            await asyncio.sleep(ASK_SECONDS)
        ready(at)

    forwarding = asyncio.create_task(forward(cluster, pod, PORT, port, listening))
    while not forwarding.done():
        await asyncio.wait([forwarding], timeout=LOOK_SECONDS)
        if said := await asyncio.to_thread(ended, cluster, pod):
            raise NotDone(f"TensorBoard has ended: {said}")
    forwarding.result()


def _check_is_free(port: int) -> None:
    """Raise BadInput if this port cannot be had, before a pod is made for it."""
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as asyncio does it
        try:
            one.bind(("127.0.0.1", port))
        except OSError as error:
            said = f"--port: {port} cannot be used: {error.strerror}; give another, or 0 for a free one"
            raise BadInput(said) from None
