# SPDX-License-Identifier: Apache-2.0
"""`evaluate`, and the validation between two epochs: loss and metrics over all tasks, as Keras gives them."""

import time
from typing import Any

import numpy as np

from dtjob_trainer.callbacks.called import Callbacks
from dtjob_trainer.data.batches import Source
from dtjob_trainer.data.python_batches import is_sequence
from dtjob_trainer.engines.engine import Engine
from dtjob_trainer.loops import alike, building
from dtjob_trainer.loops.control import StopInValidation
from dtjob_trainer.loops.fit_arguments import LeftAside, Numbers, Queue
from dtjob_trainer.loops.fit_data import FitData
from dtjob_trainer.models import initial_values, own_fit
from dtjob_trainer.models.keras3_model import trained_model
from dtjob_trainer.passes.lookahead import whole_pass
from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.collective import Group

POLL_SECONDS = 0.01
"""How often to look whether a validation that runs on other machines is done, or to be broken off."""


@runtime.may_be_cut_off
@own_fit.runs_own
def evaluate(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    verbose: Any = "auto",
    sample_weight: Any = None,
    steps: int | None = None,
    callbacks: Any = None,
    max_queue_size: int = 10,
    workers: int = 1,
    use_multiprocessing: bool = False,
    return_dict: bool = False,
) -> Any:
    """Loss and metrics of `model`, a compiled Keras 3 or tf_keras model, over the data of all tasks.

    The arguments are those of Keras's `Model.evaluate`, with its meaning. Each task computes its share of every batch,
    and every task gets the same numbers, those of one device. Call it in every task, with the same data.

    Returns a number, or a list of them if the model has metrics; with return_dict a dict by name. Raises FitError,
    DataError or CallbackError, before any batch, for what cannot be right.
    """
    here = runtime.under_strategy()
    group = Group(here.strategy, here.task)
    trained = trained_model(model, here.traits)
    trained.check()
    aside = LeftAside(validated=True)
    numbers = Numbers(batch_size, 1, 0, None, steps, None).read(trained.package, aside)
    queue = Queue(max_queue_size, workers, use_multiprocessing)
    queue.check(trained.package, is_sequence(x), aside)
    data = FitData(here, group, trained, numbers, queue, aside, runtime.SEED)
    source = data.evaluation(x, y, sample_weight)
    initial_values.begin(here.stage)  # the first exchange: after all errors that one task alone may have
    called = Callbacks(callbacks, trained, here, group, verbose)
    alike.agree_on_evaluation(group, source, called)
    with initial_values.held():
        building.build(trained, source, group, here.traits, trains=False)
    initial_values.agree_on_new()
    engine = building.engine_of(trained, group, here.traits, called.watched)
    called.begin(1, source.steps)
    with trained.of_global_batch():
        logs = validated(source, engine, called, here)
    if logs is None:
        here.stop()
    return logs if return_dict else trained.in_order(logs)


def validated(source: Source, engine: Engine, callbacks: Callbacks, here: runtime.Runtime) -> dict[str, Any] | None:
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
                callbacks.list.on_test_batch_begin(step)
            step += engine.run("evaluate", source, work)
            if callbacks.per_test_batch:
                callbacks.list.on_test_batch_end(step - 1, engine.results("evaluate"))
            if _enough(step, engine, callbacks):
                break
            # those handed out to other machines are all in memory here
            if stop.agreed(step) or (step % engine.batches_ahead == 0 and not _done(stop, step, engine)):
                return None
        if not _done(stop, step, engine):
            return None
    engine.wait()
    results = engine.results("evaluate")
    callbacks.list.on_test_end(dict(results))
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
