# SPDX-License-Identifier: Apache-2.0
"""A validation between two epochs, in which all tasks take part."""

import time
from typing import Any

import numpy as np

from dtjob_trainer.callbacks.called import Callbacks
from dtjob_trainer.data.batches import Source
from dtjob_trainer.engines.engine import Engine
from dtjob_trainer.loops.control import StopInValidation
from dtjob_trainer.passes.lookahead import whole_pass
from dtjob_trainer.process.runtime import Runtime

POLL_SECONDS = 0.01
"""How often to look whether a validation that runs on other machines is done, or to be broken off."""


def validated(source: Source, engine: Engine, callbacks: Callbacks, here: Runtime) -> dict[str, Any] | None:
    """Loss and metrics of `source`, over all tasks; None where they agreed to stop before its end. Collective."""
    engine.reset_metrics()
    source.epoch_ends()
    callbacks.test_begin()
    with StopInValidation(engine.group, here.shutdown) as stop:
        step = 0
        if stop.agreed(step):
            return None

        def size() -> int:
            # the first batches by themselves, after which a callback may have had enough
            most = stop.left(step)
            few = callbacks.per_test_batch or step == 0
            return engine.steps_per_call if few else engine.most_in_one_call("evaluate", source, most)

        for work in whole_pass(source, engine.group, size, streams=engine.streams(source)):
            if callbacks.per_test_batch:
                callbacks.test_batch_begin(step)
            step += engine.evaluate(source, work)
            if callbacks.per_test_batch:
                callbacks.test_batch_end(step - 1, engine.evaluation_logs())
            if _enough(step, engine, callbacks):
                break
            # those handed out to other machines are all in memory here
            if stop.agreed(step) or (step % engine.batches_ahead == 0 and not _done(stop, step, engine)):
                return None
        if not _done(stop, step, engine):
            return None
    engine.wait()
    results = engine.evaluation_logs()
    callbacks.test_end(results)
    return results


def _enough(step: int, engine: Engine, callbacks: Callbacks) -> bool:
    """Whether a callback of any task has set `stop_evaluating`, after so many batches. Collective.

    Only one that is called at each batch can set it after the first.
    """
    if not callbacks.per_test_batch and step > engine.steps_per_call:
        return False
    return bool(engine.group.sum(np.array([callbacks.stop_evaluating], np.float64))[0] > 0)


def _done(stop: StopInValidation, step: int, engine: Engine) -> bool:
    """Wait until the batches of a validation are done; False where the tasks agreed to stop before. Collective."""
    while not engine.done():
        if stop.agreed(step):
            return False
        time.sleep(POLL_SECONDS)
    return True
