# SPDX-License-Identifier: Apache-2.0
"""Every error of this package. Whoever catches `TrainerError` has all that a user can mend.

Each message names the field or argument and what to write instead.
"""


class TrainerError(Exception):
    """Something that a user can mend: the message names it and the mend."""

    ag_pass_through = True
    """Has AutoGraph hand it on as it is, where the program's own `tf.function` was left by it."""
    permanent = False
    """Whether the program itself must change, so that no restart of the task helps."""


class TaskError(TrainerError, ValueError):
    """The environment of this process is not what contract.md promises; the message names the variable."""


class StrategyError(TrainerError, ValueError):
    """The strategy or one of its options cannot be had here; the message names the field of the manifest."""


class MissingDeviceError(StrategyError):
    """A device that this task was given is not seen on its node; on another one it may be."""


class ArgumentError(TrainerError, ValueError):
    """What the program gave to `fit` or `train` cannot be right; the message names the argument and the mend."""

    permanent = True


class FitError(ArgumentError):
    """An argument of `fit` cannot be right under this strategy; the message names it and the mend."""


class TrainError(ArgumentError):
    """An argument of `train` cannot be right here; the message names it and the mend."""


class DataError(ArgumentError):
    """The data given to `fit` or `train` cannot be trained on as asked; the message names the argument and the mend."""


class LossError(ArgumentError):
    """A compiled loss cannot be computed as on one device; the message says what to write instead."""


class CallbackError(ArgumentError):
    """A callback cannot be right in this loop; the message names it and the mend."""


class VariablesError(ArgumentError):
    """Something in `variables` has none that could be saved; the message names it and the mend."""


class StepError(ArgumentError):
    """`step_fn` cannot be run or reported as it is; the message says what to write instead."""


class EvaluatorError(TrainerError, ValueError):
    """The evaluator cannot do its work as the program and job are written; the message says what to change."""

    permanent = True


class BestModelError(EvaluatorError):
    """The best checkpoint cannot be told; the message names the field of the manifest and the mend."""


class FrameworkError(TrainerError, RuntimeError):
    """TensorFlow or a Keras lacks what dtjob builds on; the message names it, what is lost, and the versions to use."""

    permanent = True


class CutOffError(TrainerError, RuntimeError):
    """The program has gone on after its training was cut off; the message says what to do instead."""


class ModelFitError(TrainerError, RuntimeError):
    """A method of `keras.Model` cannot work under the job's strategy; the message says what to use instead."""

    permanent = True


class NoServerError(TrainerError, RuntimeError):
    """The program waits as a server, and the job has none; the message names the field of the manifest and the mend."""

    permanent = True


class StateError(TrainerError, RuntimeError):
    """A checkpoint belongs to another model, or a task has made other variables than the chief; the message says which
    and the mend."""

    permanent = True


class CheckpointError(TrainerError):
    """The checkpoint directory cannot be used as asked; the message names it and the mend."""


class CheckpointInUseError(CheckpointError):
    """Another job that is alive writes into the checkpoint directory; the message names it and the mend."""

    permanent = True
