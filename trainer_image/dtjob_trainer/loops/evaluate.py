# SPDX-License-Identifier: Apache-2.0
"""`evaluate`: loss and metrics of a compiled Keras model, over all tasks, as `Model.evaluate` gives them."""

from typing import Any

from dtjob_trainer.callbacks.called import Callbacks
from dtjob_trainer.data.python_batches import is_sequence
from dtjob_trainer.engines.choose import engine as engine_of
from dtjob_trainer.loops import alike, building
from dtjob_trainer.loops.fit_arguments import LeftAside, Numbers, Queue
from dtjob_trainer.loops.fit_data import FitData
from dtjob_trainer.loops.validation import validated
from dtjob_trainer.models import initial_values, own_fit
from dtjob_trainer.models.keras3_model import trained_model
from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.collective import Group


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
    source = FitData(here, group, trained, numbers=numbers, queue=queue, aside=aside, seed=runtime.SEED).evaluation(
        x, y, sample_weight
    )
    initial_values.begin(here.stage)  # the first exchange: after all errors that one task alone may have
    place: dict[str, Any] = {"is_chief": here.is_chief, "asynchronous": here.traits.asynchronous, "tasks": group.tasks}
    called = Callbacks(callbacks, trained, **place, verbose=verbose)
    alike.agree_on_evaluation(group, source, called)
    with initial_values.held():
        building.build(trained, source, group, here.traits, trains=False)
    initial_values.agree_on_new()
    watched: list[Any] = ["evaluate"] if called.per_test_batch else []
    engine = engine_of(trained, group, here.traits, watched)
    called.evaluation_begin(source.steps)
    with trained.of_global_batch():
        logs = validated(source, engine, called, here)
    if logs is None:
        here.stop()
    return logs if return_dict else trained.in_order(logs)
