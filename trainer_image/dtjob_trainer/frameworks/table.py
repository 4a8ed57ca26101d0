# SPDX-License-Identifier: Apache-2.0
"""All hooks by name, such as `keras3.FIT`: what dtjob may replace in a process. It imports none of the packages."""

from collections.abc import Iterator, Mapping
from types import ModuleType

from dtjob_trainer.frameworks import datasets, functions, graphs, keras3, keras_tuner, tensorflow, tf_keras, variables
from dtjob_trainer.frameworks.hooks import Hook


def _named(module: ModuleType) -> Iterator[tuple[str, Hook]]:
    """The hooks of a module; those of a dict get the name of their key."""
    prefix = module.__name__.rpartition(".")[2]
    for name, value in vars(module).items():
        if isinstance(value, Hook):
            yield f"{prefix}.{name}", value
        elif name.isupper() and isinstance(value, dict):
            hooks = ((f"{prefix}.{name}.{key}", each) for key, each in value.items())
            yield from (pair for pair in hooks if isinstance(pair[1], Hook))


HOOKS: Mapping[str, Hook] = {
    name: hook
    for module in (tensorflow, variables, functions, graphs, datasets, keras3, tf_keras, keras_tuner)
    for name, hook in _named(module)
}
"""The hooks of TensorFlow first, then those of each Keras and of KerasTuner."""
