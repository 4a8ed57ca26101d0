# SPDX-License-Identifier: Apache-2.0
"""What dtjob replaces in Keras 3, and Keras's private names."""

import contextlib
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks import packages
from dtjob_trainer.frameworks.hooks import Hook, attribute, during, imported, in_training, method, no_such, read

_OPTIMIZER = "keras:Optimizer"


def hooks_of(model: str) -> tuple[Hook, ...]:
    """The hooks of FIT to SAVE_WEIGHTS for the class `model` of Keras 3 or tf_keras, a target."""
    trains, predicts, saves = "train and evaluate models", "predict", "keep tasks apart that save to the same file"
    under = "under the strategy of the job"

    def hook(name: str, does: str, gone: str, ends: bool = False) -> Hook:
        return Hook(targets=(f"{model}.{name}",), does=does, gone=gone, ends=ends)

    return (
        hook("fit", f"It trains {under}, with checkpoints and resume.", f"{trains} {under}", ends=True),
        hook("evaluate", f"It evaluates {under}.", f"{trains} {under}", ends=True),
        hook("predict", "In groups, and on several CPUs, one device of the task predicts.", f"{predicts} {under}"),
        hook("predict_on_batch", "It predicts as `predict` does.", f"{predicts} {under}"),
        hook("save", "It writes beside the file and renames it. The status names the chief's last model.", saves),
        hook("save_weights", "It writes beside the file and renames it.", saves),
    )


FIT, EVALUATE, PREDICT, PREDICT_ON_BATCH, SAVE, SAVE_WEIGHTS = hooks_of("keras:Model")
STEPS_BY_HAND = {
    name: Hook(
        targets=(f"keras:Model.{name}",),
        does="Under MultiWorkerMirrored and ParameterServer it raises an error that says what to call.",
        gone="refuse it where it fails",
    )
    for name in ("train_on_batch", "test_on_batch")
}
SAMPLES_OF_SAVES = Hook(
    targets=("keras.src.saving.saving_lib:get_attr_skipset",),
    does="In a group, Keras makes its samples of optimizers outside of the strategy. So one task can save alone.",
    gone="save a model in one task of a group",
)
ADD_IN_PLACE = Hook(
    targets=("keras:Variable.assign_add", "keras:Variable.assign_sub"),
    does="Under ParameterServer and CentralStorage, variables add by TensorFlow's own operation.",
    gone="count the updates of several workers",
    ends=True,
)
VARIABLE_MADE = Hook(
    targets=("keras:Variable._initialize_with_initializer",),
    does="Variables that a `tf.function` makes for several replicas are made before it runs.",
    gone="make variables in a step of several replicas",
    ends=True,
)
SLOT = Hook(
    targets=("keras:Optimizer.add_variable_from_reference",),
    does="Under ParameterServer, a slot of a variable in shards is cut as the variable is.",
    gone="train variables that a partitioner cuts",
    ends=True,
)
UPDATE_STEP = Hook(
    targets=(f"{_OPTIMIZER}._backend_update_step",),
    does="Under ParameterServer, each shard of a variable is updated on its parameter server.",
    gone="train variables that a partitioner cuts",
    ends=True,
)
WEIGHT_DECAY = Hook(
    targets=(f"{_OPTIMIZER}._apply_weight_decay",),
    does="Under ParameterServer, the weights of each shard decay on its parameter server.",
    gone="train variables that a partitioner cuts",
    ends=True,
)
LOSS_SCALED = in_training(
    "keras.src.losses.loss:scale_loss_for_distribution",
    does="Losses are not divided by the number of replicas.",
    gone="have the loss of one device on several replicas",
    expected="to scale a loss",
)
LOSS_UNSCALED = in_training(
    "keras.src.losses.loss:unscale_loss_for_distribution",
    does="The loss of each output is not multiplied by the number of replicas.",
    gone="report the loss of one device",
)
APPLY = in_training(
    "keras:Optimizer.apply",
    does="Gradients are summed over replicas before an optimizer clips, scales or accumulates them.",
    gone="sum gradients as on one device",
)
GRADIENTS_SUMMED = in_training(
    "keras:Optimizer._all_reduce_sum_gradients",
    does="Gradients that are summed already are not summed again.",
    gone="sum gradients as on one device",
    expected="to sum the gradients of replicas",
)
GRADIENTS_APPLIED = in_training(
    "keras:Optimizer._backend_apply_gradients",
    does="An optimizer that accumulates, or keeps averages, decides once for all replicas.",
    gone="accumulate gradients or average weights on several replicas",
    expected="to apply gradients",
)
SCALED_APPLIED = in_training(
    "keras:optimizers.LossScaleOptimizer._tf_apply",
    does="The loss scale changes once for all replicas.",
    gone="scale losses on several replicas",
    expected="to apply gradients of a scaled loss",
)
LOSS_SCALED_UP = in_training(
    "keras:optimizers.LossScaleOptimizer.scale_loss",
    does="Under ParameterServer, a step is scaled back by the scale that it began with.",
    gone="scale losses on several workers",
)
METRIC_UPDATED = in_training(
    "keras:Metric.update_state",
    does="In a replica's step, a metric counts as on one device.",
    gone="have the metrics of one device on several replicas",
)
LAYER_CALLED = in_training(
    "keras:Layer.__call__",
    does="In a replica's step, a layer of Keras keeps the rows of the replica apart.",
    gone="follow the rows of a replica",
)
METRIC_RESULT = Hook(
    targets=("keras:Metric.result",),
    does="The results of all metrics are read by one function; a step of the program has those of its replica.",
    gone="read metrics where callbacks see each step",
    lasts="call",
)
TAKE = Hook(
    targets=("keras.src.backend.tensorflow.numpy:take", "keras.src.backend.tensorflow.ops.numpy:take"),  # since 3.16
    does="Under ParameterServer, rows of a table are looked up where the table is.",
    gone="look up rows without reading the whole table",
    some=True,
)
ADAGRAD_STEP = Hook(
    targets=("keras:optimizers.Adagrad.update_step",),
    does="Under ParameterServer, it reads and writes only the rows of a sparse gradient.",
    gone="update rows without reading the whole table",
)
GLOBAL_GENERATOR = in_training(
    "keras.src.random.seed_generator:global_seed_generator",
    does="All threads draw from the generator of the thread that trains, which checkpoints keep.",
    gone="restore random numbers",
)

strategy_of = attribute("_distribution_strategy", "train variables that a partitioner cuts")
"""The strategy of a Keras optimizer."""
accumulators = attribute("_accumulators", "update rows without reading the whole table")
"""The sums of squares of Adagrad, in the order of variables."""
trained_by = attribute("_trainable_variables", "know which variables an optimizer updates")
"""The variables that a built optimizer updates."""
compiled_loss = attribute("_compile_loss", "see which losses a model was compiled with")
"""The loss that a model was compiled with, as one object; None if there is none. Read for ragged or sparse data."""
compiled_metrics = attribute("_compile_metrics", "see which metrics a model was compiled with")
"""The metrics that a model was compiled with, as one object; None if there are none."""
loss_function = attribute("_compute_loss", "compute the loss of a model")
"""The function with which Keras's own step computes the loss, with those that layers add."""
output_spec = imported("keras.src.backend:compute_output_spec")
"""Given a function and its arguments, what the function gives for symbolic tensors."""
takes_training = attribute("_call_has_training_arg", "call a model")
"""Whether the `call` of a model has an argument `training`."""
loss_tracker = attribute("_loss_tracker", "report the loss")
"""The metric that counts the loss of a model."""
update_step_of = method("_backend_update_step", "update variables of parameter servers")
"""Given an optimizer, summed gradients, variables of TensorFlow's own and a rate: update the variables."""
decays = method("_use_weight_decay", "let weights decay")
"""Whether an optimizer lets the weights of a variable decay."""
place_of = method("_get_variable_index", "find the slots of a variable")
"""Given an optimizer and a variable, the number of the variable in the lists of slots."""
autocast = method("_maybe_autocast", "look up rows in the type of a layer")
"""Given a Keras variable and a value, the value in the type in which a layer computes with the variable."""
clipped = method("_clip_gradients", "clip gradients as on one device")
"""Given an optimizer and gradients, the gradients as the optimizer clips them."""
let_weights_decay = method("_apply_weight_decay", "let weights decay")
"""Given an optimizer and variables: let those weights decay among the variables that the optimizer lets decay."""
is_overwritten = method("_overwrite_variable_with_gradient", "know which variables a gradient overwrites")
"""Whether, for an optimizer, the gradient of a variable is the variable's next value."""
in_order = method("_flatten_metrics_in_order", "return what Model.evaluate does")
"""Given a model and logs, what `Model.evaluate` returns of them."""


@contextlib.contextmanager
def without_strategy(model: Any) -> Iterator[None]:
    """While this lasts, a model of Keras 3 or tf_keras has no strategy of its own."""
    attributes = vars(model)
    held = {name: attributes[name] for name in ("_distribute_strategy", "_distribution_strategy") if name in attributes}
    if not held:
        raise no_such(type(model), "_distribute_strategy", "predict on one device")
    attributes.update(dict.fromkeys(held))
    try:
        yield
    finally:
        attributes.update(held)


@contextlib.contextmanager
def under(optimizer: Any, strategy: Any) -> Iterator[None]:
    """While this lasts, a Keras optimizer places variables by that `strategy`."""
    before = read(optimizer, "_distribution_strategy", "train variables that a partitioner cuts")
    optimizer._distribution_strategy = strategy
    try:
        yield
    finally:
        optimizer._distribution_strategy = before


def value_behind(variable: Any) -> Any:
    """The value of a Keras variable outside of Keras's stateless scopes. None within one."""
    if read(import_module("keras.src.backend"), "in_stateless_scope", "look up rows in place")():
        return None
    return variable._value


def averages_of(optimizer: Any) -> list[tuple[Any, Any]]:
    """Each variable of an optimizer that updates variables itself, with its moving average, which may be None.

    Empty before the optimizer is built.
    """
    if not optimizer.built:
        return []
    averages = read(optimizer, "_model_variables_moving_average", "keep moving averages of weights")
    return list(zip(optimizer._trainable_variables, averages, strict=False))


def sums_gradients(optimizer: Any) -> bool:
    """Whether an optimizer sums the gradients of replicas as Keras's own do: its class overrides nothing of that."""
    names = ("apply", *(hook.targets[0].rpartition(".")[2] for hook in (GRADIENTS_APPLIED, UPDATE_STEP)))
    return all(packages.is_of(packages.home(type(optimizer), name), "keras.") for name in names)


def accumulated(optimizer: Any, variable: Any) -> Any:
    """What an optimizer has accumulated of the gradients of a variable."""
    return optimizer._accumulated_gradients[optimizer._get_variable_index(variable)]


def calls_of(optimizer: Any) -> Any:
    """How often an optimizer was applied, as a tensor; not only with effect, as `iterations` counts."""
    return optimizer._iterations.value


def is_compiled(model: Any) -> bool:
    """Whether a model was compiled."""
    return bool(model.compiled)


def reports_as_keras(model: Any) -> bool:
    """Whether the metrics of a step are updated and reported by Keras's own methods of the model."""
    names = ("compute_metrics", "get_metrics_result")
    return not any(name in vars(model) or not packages.is_of(packages.home(type(model), name)) for name in names)


def update_metrics(model: Any, y: Any, y_pred: Any, sample_weight: Any) -> None:
    """Update the metrics of compile(), if there are any, as Keras's own `compute_metrics` does."""
    metrics = compiled_metrics(model)
    if metrics is not None:
        metrics.update_state(y, y_pred, sample_weight)


def scales_losses(model: Any) -> bool:
    """Whether a model was compiled with a loss by its name, of which Keras takes the mean."""
    import keras

    return any(isinstance(loss, str) for loss in keras.tree.flatten(getattr(model, "loss", None)))


def runs_eagerly(model: Any) -> bool:
    """Whether a model of Keras 3 or tf_keras was compiled to run as Python."""
    return bool(getattr(model, "_run_eagerly", None))


def build_of_specs(model: Any, *data: Any) -> None:
    """Build a model with its losses, metrics and optimizer, from the specs of x, y and weights."""
    read(model, "_symbolic_build", "build a model")(data_batch=data)


def given_metrics(metrics: Any) -> list[Any]:
    """The metrics that `compile` was given, of `compiled_metrics`."""
    cannot = "see which metrics a model was compiled with"
    return [read(metrics, "_user_metrics", cannot), read(metrics, "_user_weighted_metrics", cannot)]


def layers_of(model: Any, *, itself: bool = True) -> list[Any]:
    """All layers of a model of Keras 3 or tf_keras, at any depth; `itself`: the model too."""
    return list(read(model, "_flatten_layers", "see the layers of a model")(include_self=itself))


class _Apart(list[Any]):
    """The losses of a layer, of each replica by itself: replicas are traced in turns."""

    def __init__(self, current: Callable[[], Any]) -> None:
        super().__init__()
        self._current, self._each = current, {}  # type: ignore[var-annotated]

    def _mine(self) -> list[Any]:
        found: list[Any] = self._each.setdefault(id(self._current()), [])
        return found

    def extend(self, losses: Any) -> None:
        self._mine().extend(losses)

    def clear(self) -> None:
        self._mine().clear()

    def __getitem__(self, which: Any) -> Any:
        return self._mine()[which]

    def __len__(self) -> int:
        return len(self._mine())


@contextlib.contextmanager
def losses_apart(model: Any, current: Callable[[], Any]) -> Iterator[None]:
    """While this lasts, each layer of `model` keeps the losses of each replica by themselves.

    - current: gives what tells the replica that is being traced from others.
    """
    layers = layers_of(model)
    before = [(vars(layer), read(layer, "_losses", "keep the losses of replicas apart")) for layer in layers]
    try:
        for attributes, _ in before:
            attributes["_losses"] = _Apart(current)
        yield
    finally:
        for attributes, losses in before:
            attributes["_losses"] = losses


def global_generator() -> Any:
    """This thread's generator of random numbers, made without a draw from Python's own."""
    before = random.getstate()
    generator = read(import_module("keras.src.random.seed_generator"), "global_seed_generator", GLOBAL_GENERATOR.gone)()
    random.setstate(before)
    return generator


def one_generator(generator: Any) -> AbstractContextManager[None]:
    """While this lasts, all threads draw from this generator.

    Keras has one for each, and each replica is traced in a thread of its own, where none can be made.
    """
    return during(GLOBAL_GENERATOR, lambda _: lambda: generator)
