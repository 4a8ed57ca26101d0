# SPDX-License-Identifier: Apache-2.0
"""Methods of single objects, replaced for a while: past Keras's own `__setattr__`, which keeps book of attributes."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def overridden(instance: Any, **methods: Callable[..., Any]) -> Iterator[None]:
    """While this lasts, `instance`'s methods of these names are `methods`, which are given no `self`."""
    attributes = vars(instance)
    before = {name: attributes[name] for name in methods if name in attributes}
    attributes.update(methods)
    try:
        yield
    finally:
        for name in methods:
            del attributes[name]
        attributes.update(before)
