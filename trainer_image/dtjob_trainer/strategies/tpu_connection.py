# SPDX-License-Identifier: Apache-2.0
"""Strategy TPU: connects to a TPU of one host, or ends the process: TensorFlow may wait for a dead address for ever."""

import contextlib
import faulthandler
import os
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from dtjob_trainer.contract import log_line
from dtjob_trainer.errors import StrategyError

CONNECT_SECONDS = 40.0
"""Limit for the connection; with the imports before it, an error is out within 60 s. A dead grpc:// address hung
TensorFlow over 1500 s without a line."""
LAST_RESORT_SECONDS = 5.0
"""How much later a thread that needs no Python ends the process, where TensorFlow holds the interpreter's lock."""

_MEND = (
    "strategyOptions.tpu.address: local needs google.com/tpu in the pod and an image with TensorFlow's TPU build "
    "(pip install tensorflow-tpu); a name or grpc:// address must be reachable"
)


def connect(options: Mapping[str, Any], seconds: float = CONNECT_SECONDS) -> Any:
    """The TPUStrategy for `strategyOptions`. Raises StrategyError where there is no TPU.

    Ends the process with code 1, after a line that says why, where there is no answer within `seconds`.
    """
    address = (options.get("tpu") or {}).get("address") or "local"
    with _limit(address, seconds):
        try:
            return _strategy_at(address)
        except Exception as error:  # whatever TensorFlow, its metadata client or the network raises
            reason = (str(error).splitlines() or [""])[0]
            raise StrategyError(f"no TPU at {address!r}: {type(error).__name__}: {reason}. {_MEND}") from error


def _strategy_at(address: str) -> Any:
    import tensorflow as tf

    resolver = tf.distribute.cluster_resolver.TPUClusterResolver(tpu=address)
    if address != "local":
        tf.config.experimental_connect_to_cluster(resolver)
    tf.tpu.experimental.initialize_tpu_system(resolver)
    strategy = tf.distribute.TPUStrategy(resolver)
    hosts = strategy.extended.num_hosts
    if hosts != 1:
        raise StrategyError(f"the slice has {hosts} hosts, and slices of several hosts cannot be trained on")
    return strategy


@contextlib.contextmanager
def _limit(address: str, seconds: float) -> Iterator[None]:
    """Ends the process where the block under it takes longer than `seconds`."""

    def give_up() -> None:
        message = f"no TPU answered at {address!r} within {seconds:.0f} s, and TensorFlow would wait on. "
        log_line.write(sys.stderr, message + _MEND, level="error")
        os._exit(1)

    timer = threading.Timer(seconds, give_up)
    timer.daemon = True
    timer.start()
    faulthandler.dump_traceback_later(seconds + LAST_RESORT_SECONDS, exit=True)
    try:
        yield
    finally:
        timer.cancel()
        faulthandler.cancel_dump_traceback_later()
