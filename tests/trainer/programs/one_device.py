"""Trains small models one after the other, by `dt.fit` or (--reference) by Keras's own `Model.fit` on one device.

Writes what each ended with, history and weights, to --out. Both must be equal: test_one_device.py compares them.
"""

import pickle
from pathlib import Path

import one_device_data  # noqa: F401  # each adds its cases
import one_device_every_optimizer  # noqa: F401
import one_device_loop  # noqa: F401
import one_device_losses  # noqa: F401
import one_device_optimizers  # noqa: F401
from one_device_setup import CASES, keras, options

import dtjob_trainer as dt

results = {}
for name, function in CASES.items():
    if options.cases is None or name in options.cases.split(","):
        keras.utils.set_random_seed(3)
        results[name] = function()
if dt.is_chief():
    Path(options.out).write_bytes(pickle.dumps(results))
