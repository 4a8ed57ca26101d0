# SPDX-License-Identifier: Apache-2.0
"""Every task exports the same numbers to the same directory again and again, under checkpoint keys in an order of its
own.

TensorFlow itself gives keys in such an order: it keeps the variables that a function reads in a set.
"""

from pathlib import Path

import tensorflow as tf

import dtjob_trainer as dt
from dtjob_trainer.process import runtime

EXPORTS = 25


class Difference(tf.Module):
    """5 - 3, of two variables that are stored as `parts/0` and `parts/1`."""

    def __init__(self) -> None:
        super().__init__()
        larger, smaller = tf.Variable(5.0), tf.Variable(3.0)
        self.parts = [larger, smaller] if dt.is_chief() else [smaller, larger]
        self.difference = tf.function(lambda: larger.read_value() - smaller.read_value(), input_signature=[])


path = Path("exported")
if dt.is_chief():
    path.mkdir()
    (path / "notes.txt").write_text("of the user")
module = Difference()  # the tasks wait for each other as they make variables
for _ in range(EXPORTS):
    tf.saved_model.save(module, path)
    loaded = tf.saved_model.load(path)
    found = float(loaded.difference())
    assert found == 2.0, f"5 - 3 = {found}"
own = {each.name for each in Path().glob(f".{runtime.current().task.id}-*")}
assert own == (set() if dt.is_chief() else {f".{runtime.current().task.id}-exported"})
print("exported")
