# SPDX-License-Identifier: Apache-2.0
"""Mends how Keras 3 saves where making a variable takes all tasks, so that one of them can save alone.

As Keras walks over a model, it makes an optimizer of its own beside each of the model's, to see which attributes all
optimizers have. In the scope of MultiWorkerMirrored, all tasks have to make what one makes: a `model.save` at the
chief alone would break off the training of all. tf_keras has to have all tasks save, as it sums up their statistics.
"""

from dtjob_trainer.contract.strategy import Traits
from dtjob_trainer.frameworks import hooks, keras3
from dtjob_trainer.strategies.ambient import outside_strategy


def need_no_peers(traits: Traits) -> None:
    """Have Keras make its samples outside of the strategy, where the strategy is one like that.

    That serves whatever saves: `Model.save` and `save_weights`, `keras.saving`, `tf.keras`, and callbacks of any kind.
    """
    if traits.collective:
        hooks.put(keras3.SAMPLES_OF_SAVES, outside_strategy)
