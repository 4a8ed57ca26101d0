# SPDX-License-Identifier: Apache-2.0
"""Trains small models one after the other, by `dt.fit` or (--reference) by Keras's own `Model.fit` on one device.

Writes what each ended with, history and weights, to --out. Both must be equal: test_one_device.py compares them. With
--tell a case that is refused is no failure, and what the log calls without effect is written beside.
"""

import contextlib
import io
import pickle
import re
from pathlib import Path

import one_device_arguments  # noqa: F401
import one_device_data  # noqa: F401  # each adds its cases
import one_device_every_optimizer  # noqa: F401
import one_device_loop  # noqa: F401
import one_device_losses  # noqa: F401
import one_device_optimizers  # noqa: F401
import one_device_other_losses  # noqa: F401
import one_device_placements  # noqa: F401
import one_device_ragged  # noqa: F401
import one_device_states  # noqa: F401
import one_device_steps  # noqa: F401
import one_device_tables  # noqa: F401
from one_device_setup import CASES, keras, options

import dtjob_trainer as dt
from dtjob_trainer.errors import TrainerError


def told(function):
    """What the case came to, with what the log said, or what refused it."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            found = function()
    except Exception as error:
        if not options.reference and not isinstance(error, TrainerError):
            raise
        return {"refused": " ".join(str(error).split())}
    without = re.findall(r'message="(without effect: .*?)"$', said.getvalue(), re.MULTILINE)
    return {"found": found, "without effect": without}


results = {}
for name, function in CASES.items():
    if options.cases is None or name in options.cases.split(","):
        keras.utils.set_random_seed(3)
        results[name] = told(function) if options.tell else function()
if dt.is_chief():
    Path(options.out).write_bytes(pickle.dumps(results))
