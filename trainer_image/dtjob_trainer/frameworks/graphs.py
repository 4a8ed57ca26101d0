# SPDX-License-Identifier: Apache-2.0
"""Where TensorFlow makes operations, takes gradients and assigns variables."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks.hooks import Hook, imported

_FUNCTIONS = "tensorflow.python.eager.polymorphic_function.concrete_function"
_GONE = "give the numbers of one device where several replicas share a batch"

shape_in = imported("tensorflow.python.framework.tensor_util:constant_value_as_shape")
"""The shape that a tensor of sizes says, as far as it is known while a graph is made."""


def _hook(does: str, *targets: str) -> Hook:
    return Hook(targets=targets, does=does, gone=_GONE, ends=True)


OPERATIONS = _hook(
    "An operation of a replica's step that needs more than this replica's part gets the sum or the rows of all.",
    "tensorflow.python.framework.func_graph:FuncGraph._create_op_internal",
)
CAPTURES = _hook(
    "A branch, loop or function within a replica's step takes what is the same on all replicas.",
    "tensorflow.python.framework.func_graph:FuncGraph.capture",
)
NOTES = _hook(
    "A tape keeps how the replicas' values of each tensor make one device's.",
    "tensorflow.python.eager.execute:record_gradient",
)
OWN_GRADIENTS = _hook(
    "The same for operations that have a gradient function of their own.",
    "tensorflow.python.eager.record:record_operation",
)
FUNCTION_CALLS = _hook(
    "A function that stays a function is given what one device has, before TensorFlow begins to call it.",
    f"{_FUNCTIONS}:ConcreteFunction._call_flat",
)
GRADIENT_FUNCTIONS = _hook(
    "`tf.gradients` places gradients as tapes do.", "tensorflow.python.framework.ops:get_gradient_function"
)
TAPES = _hook(
    "The gradients of one tape are summed over the replicas by one exchange.", "tensorflow:GradientTape.gradient"
)
WATCHES = _hook(
    "A tape that watches a tensor sees what is made of the tensor afterwards.", "tensorflow:GradientTape.watch"
)
MEETINGS = _hook(
    "Within a branch each replica updates what it has of a variable, as all have the same values.",
    "tensorflow.python.distribute.merge_call_interim:maybe_merge_call",
    "tensorflow:__internal__.distribute.interim.maybe_merge_call",
    "tensorflow.compat.v2:__internal__.distribute.interim.maybe_merge_call",
)
_ASSIGNS = ("assign", "assign_add", "assign_sub")
ASSIGNS = {
    name: _hook(
        f"`{name}` of a variable in a replica's step takes one device's value.",
        f"tensorflow.python.distribute.values:DistributedVariable.{name}",
        f"tensorflow.python.distribute.ps_values:AggregatingVariable.{name}",
    )
    for name in _ASSIGNS
}


def register_gradients(wrap: Callable[[Any], Any]) -> None:
    """Have tapes call what `wrap` makes of TensorFlow's function that takes the gradient of one operation."""
    tensorflow = import_module("tensorflow.python.pywrap_tfe")
    tensorflow.TFE_Py_RegisterGradientFunction(
        wrap(import_module("tensorflow.python.eager.backprop")._gradient_function)
    )


def register_sums(wrap: Callable[[Any], Any]) -> None:
    """Have tapes add up gradients of one tensor by what `wrap` makes of TensorFlow's function."""
    backprop, tensorflow = (
        import_module("tensorflow.python.eager.backprop"),
        import_module("tensorflow.python.pywrap_tfe"),
    )
    space = backprop._default_vspace
    tensorflow.TFE_Py_RegisterVSpace(space._replace(aggregate_fn=wrap(space.aggregate_fn)))


def is_mirrored(variable: Any) -> bool:
    """Whether each replica has a copy of a variable, which are all alike."""
    values = import_module("tensorflow.python.distribute.values")
    return isinstance(variable, values.MirroredVariable) and not isinstance(variable, values.SyncOnReadVariable)


def is_put_together_on_read(variable: Any) -> bool:
    """Whether each replica has a value of its own of a variable, which are put together when someone reads it."""
    return isinstance(variable, import_module("tensorflow.python.distribute.values").SyncOnReadVariable)


def of_this_replica(variable: Any) -> Any:
    """What this replica has of a distributed variable; any other as it is."""
    known = isinstance(variable, import_module("tensorflow.python.distribute.values").DistributedVariable)
    return variable._get() if known else variable


def variable_of(handle: Any) -> Any:
    """The distributed variable that the handle of a replica's part belongs to; None of any other."""
    container = getattr(handle, "_dtjob_container", None) or getattr(handle, "_distributed_container", None)
    return None if container is None else container()


def note_variable(captured: Any, handle: Any) -> Any:
    """Have `variable_of` know `captured`, which stands for `handle` in a graph; returns it."""
    container = getattr(handle, "_dtjob_container", None) or getattr(handle, "_distributed_container", None)
    if container is not None:
        captured._dtjob_container = container
    return captured


def mask_of(tensor: Any) -> Any:
    """The mask that Keras keeps beside a tensor; None where there is none."""
    return getattr(tensor, "_keras_mask", None)


def keep_mask(tensor: Any, mask: Any) -> None:
    """Have Keras find this mask beside a tensor."""
    tensor._keras_mask = mask


def is_of_function(gradient: Callable[..., Any]) -> bool:
    """Whether a gradient function is that of a function of TensorFlow, which is made of TensorFlow's own gradients."""
    return getattr(gradient, "__module__", "") == _FUNCTIONS
