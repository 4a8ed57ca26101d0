# SPDX-License-Identifier: Apache-2.0
"""What Keras prints of a training, at the chief alone: `verbose` of `fit`."""

import sys
from collections.abc import Mapping
from typing import Any


def resolved(verbose: Any, package: str, *, asynchronous: bool) -> Any:
    """`verbose` as callbacks of `package` find it in their params."""
    if package == "tf_keras" and verbose == "auto":
        return 2 if asynchronous else 1
    return verbose


def is_terminal() -> bool:
    """Whether somebody looks on, and no log grows by a line for each change of a bar."""
    return bool(hasattr(sys.stdout, "isatty") and sys.stdout.isatty())


def make(callbacks: Any, *, live: bool) -> Any:
    """Keras's own progress bar, as a callback. `callbacks`: the package's module.

    - live: show each step. Else an epoch is shown once it has ended, which needs no metrics after each step.
    """
    arguments = {"count_mode": "steps"} if callbacks.__name__.startswith("tf_keras.") else {}

    class Bar(callbacks.ProgbarLogger):  # type: ignore[misc]
        def on_train_batch_end(self, batch: int, logs: Mapping[str, Any] | None = None) -> None:
            if live:
                super().on_train_batch_end(batch, logs)

    return Bar(**arguments)
