"""Adds up over all tasks what each has, and prints it. What the chief has is infinite in one place."""

import numpy as np

from dtjob_trainer.process import runtime
from dtjob_trainer.strategies.collective import Group

here = runtime.current()
group = Group(here.strategy, here.task)
if group.tasks == 1:
    group.tasks, group.most_on_host = 2, 0  # have replicas add up what they have, which one task has no need of
first = np.array([np.inf if here.is_chief else 1.0, 2.0 + group.index])
arrays = [first, np.float64(group.index), np.full((2, 1), 10.0**group.index)]
print("sums", [array.tolist() for array in group.sum_each(arrays)], group.sum_each([]), flush=True)
group.leave_together()
