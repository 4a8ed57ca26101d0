# SPDX-License-Identifier: Apache-2.0
"""Adds up over all tasks what each has, and prints it. What the chief has is infinite in one place.

Then the chief gives the others bytes of its own.
"""

import numpy as np

from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.collective import Group

here = runtime.current()
group = Group(here.strategy, here.task)
first = np.array([np.inf if here.is_chief else 1.0, 2.0 + group.index])
arrays = [first, np.float64(group.index), np.full((2, 1), 10.0**group.index)]
data = np.random.default_rng(0).integers(0, 256, 1001, np.uint8)
assert np.array_equal(group.broadcast(data if here.is_chief else None, data.size), data)
print("sums", [array.tolist() for array in group.sum_each(arrays)], group.sum_each([]), flush=True)
group.leave_together()
