# SPDX-License-Identifier: Apache-2.0
"""Private parts of `tf.function` and of AutoGraph."""

from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any

from dtjob_trainer.frameworks.hooks import Hook, attribute, imported, read

_POLYMORPHIC = "tensorflow.python.eager.polymorphic_function"
_CANNOT = "trace functions as parts of a step"

CALLED = Hook(
    targets=(f"{_POLYMORPHIC}.polymorphic_function:Function.__call__",),
    does="A `tf.function` that a step calls is traced as a part of the step. Elsewhere it is TensorFlow's own.",
    gone=_CANNOT,
    ends=True,
)

left_unconverted = imported("tensorflow.python.autograph.impl.api:autograph_artifact")
"""A function which AutoGraph calls as it is. What it calls is converted as before."""
has_attributes = attribute("_attributes", _CANNOT)
"""Whether a `tf.function` has attributes, by which TensorFlow finds it."""
by_xla = attribute("_jit_compile", _CANNOT)
"""Whether a `tf.function` asks to be compiled by XLA."""
as_tensors = imported("tensorflow.python.util.variable_utils:convert_variables_to_tensors")
"""Values with tensors in place of variables."""
as_tensor = imported("tensorflow.python.framework.ops:convert_to_tensor_or_composite")
"""A tensor, of whatever kind, of one value."""


def converting(whatever: bool = True) -> AbstractContextManager[Any]:
    """While this lasts, AutoGraph converts the Python that is called; not `whatever`: what asks for it."""
    module = import_module("tensorflow.python.autograph.core.ag_ctx")
    status = module.Status.ENABLED if whatever else module.Status.UNSPECIFIED
    found: AbstractContextManager[Any] = module.ControlStatusCtx(status=status)
    return found


def call_python(function: Any, args: Any, kwargs: Any) -> Any:
    """Call the Python code of a `tf.function`, converted if the function asks for that."""
    if not read(function, "_autograph", _CANNOT):
        return function.python_function(*args, **kwargs)
    options = read(function, "_experimental_autograph_options", _CANNOT)
    convert = import_module(f"{_POLYMORPHIC}.autograph_util").py_func_from_autograph
    converted = convert(function.python_function, options)
    with converting(whatever=False):  # what calls it may have been left unconverted
        return converted(*args, **kwargs)


def arguments_of(function: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    """The arguments of a call of a `tf.function`: numbers that its signature names are tensors."""
    canonicalize = import_module(f"{_POLYMORPHIC}.function_type_utils").canonicalize_function_inputs
    defaults = read(function, "_default_values", _CANNOT)
    bound = canonicalize(args, kwargs, function.function_type, defaults)
    return bound.args, bound.kwargs
