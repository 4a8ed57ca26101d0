# SPDX-License-Identifier: Apache-2.0
"""`over_all_rows`: a function of all rows of the global batch, where replicas share the batch."""

from collections.abc import Callable
from typing import Any

import tensorflow as tf

from dtjob_trainer.errors import TrainerError
from dtjob_trainer.placement import tracker
from dtjob_trainer.placement.kinds import Mode


def over_all_rows(function: Callable[..., Any], *tensors: Any) -> Any:
    """What `function` gives for `tensors` of all replicas' rows together; every replica computes the same.

    - function: of as many tensors as there are `tensors`. The operations in it are made as they are.
    - tensors: this replica's rows, [n, …]; `function` gets [N, …]. A tensor without rows is given as on one device.

    Gradients flow to the rows of each replica. Use it in a step, loss or metric for what has to see all rows and is
    made of operations that `dt.fit` cannot know, such as those of a library of your own. Where one replica has all
    rows this is `function(*tensors)`. Raises TrainerError in a scaled step and in a step function of `dt.train`.
    """
    found = tracker.current()
    if found is not None:
        whole = tf.nest.map_structure(found.same, tensors)
        with found.within(Mode.OFF):
            return function(*whole)
    if tf.distribute.get_strategy().num_replicas_in_sync == 1:
        return function(*tensors)
    raise TrainerError(
        "dt.over_all_rows: this step puts replicas together by itself, so that their rows are not known; call it in a "
        "step, loss or metric that dt.fit trains with"
    )
