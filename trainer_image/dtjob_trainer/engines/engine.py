# SPDX-License-Identifier: Apache-2.0
"""What a loop asks of an engine, whichever way its steps are run: one subclass for each way."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Literal

from dtjob_trainer.data.batches import Batch, Source
from dtjob_trainer.data.stream import Portion
from dtjob_trainer.engines.custom_step import CustomStep
from dtjob_trainer.models import metric_states
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.strategies.collective import Group

Phase = Literal["train", "evaluate"]
Work = Sequence[Batch] | Portion
"""What one call of an engine runs: a step on each batch."""
CALL_SECONDS = 0.1
"""After how long a call that runs until then runs no further step."""
MEASUREMENTS = 5
"""Of so many steps whose time was measured, the median counts."""


class Engine(ABC):
    """Runs steps of a built model on the replicas of a strategy.

    A step that was asked for may be done later. What reads results or metrics tells of those that are done; `wait`
    before that tells of all.
    """

    exact = True
    """Whether steps are done in an order that a restarted run repeats."""
    overlaps = False
    """Whether devices may still work on steps while the host reads batches, so that steps must be measured."""
    measures_next = False
    """Whether the next call measures a step of training: how long devices take for it. Tasks set it alike."""
    batches_ahead = 1
    """Of evaluation, after how many batches to see that all are done before more are handed out."""

    def __init__(self, trained: TrainedModel, group: Group, watched: Collection[Phase] = ()) -> None:
        """`watched`: the phases whose steps callbacks see, so that none but those of `steps_per_call` share a call."""
        self.trained, self.group, self.watched = trained, group, watched
        self.custom = isinstance(trained, CustomStep)
        """Whether steps are a `step_fn` of the program's own, which AutoGraph converts as in any `tf.function`."""
        self.steps_per_call = 1
        """Steps that one call of `run` makes where something happens between calls."""
        self._own_step = {"train": trained.custom_train_step, "evaluate": trained.custom_test_step}
        self._last: dict[Phase, Any] = {}  # what the last step of each phase gave, as `_result` takes it
        self._functions: dict[tuple[Phase, int], Any] = {}

    def run(self, phase: Phase, source: Source, work: Work) -> int:
        """Train one step on each batch of `work`, or update loss and metrics with it; how many steps that were.

        Fewer than asked for where a stream ends, or in one process where the call takes more than CALL_SECONDS.
        """
        self._last[phase], done = self._run(phase, source, work)
        return done

    def streams(self, source: Source) -> bool:
        """Whether steps take the batches of `source` out of a `Stream` by themselves."""
        return False

    def most_in_one_call(self, phase: Phase, source: Source, wanted: int) -> int:
        """How many steps of a phase to run in one call where `wanted` could be.

        Tasks that take steps together must want equally many: TensorFlow matches their sums by the number of the step
        within the call.
        """
        return self.steps_per_call

    def wait(self) -> None:  # noqa: B027  # whatever reads a result waits for it
        """Return when all steps so far are done, where they are handed out."""

    def done(self) -> bool:
        """Whether `wait` would return at once."""
        return True

    def outstanding(self) -> int:
        """How many of the steps asked for are not done, where they are handed out. Any thread may ask."""
        return 0

    def updates(self) -> int:
        """How many updates of the weights there were, where each step makes one and this process can tell; else 0."""
        return 0

    def busy(self, source: Source, step: int) -> float | None:
        """For how many seconds devices have worked on training, at `step`, while the host may have read batches.

        0 if the host waits for each step. None: nobody knows, or `source.waited` does not count.
        """
        return None

    def traced(self, source: Source) -> Any:
        """The traced function (a `ConcreteFunction`) of training steps on batches of `source`."""
        return self._function("train", source).get_concrete_function()

    def loss(self) -> float | None:
        """This task's part of the loss of the last step that is done; the sum over tasks is that of the global batch.

        None where a `train_step` of the model's own gives none.
        """
        result = self._result(self._last["train"])
        return self.trained.returned["train"].loss(result) if self._own_step["train"] else float(result)

    def values(self) -> dict[str, float]:
        """What a custom step returned in the last step that is done, summed over this task's replicas.

        Empty before the first step.
        """
        found = self._result(self._last["train"]) if "train" in self._last else None
        return {name: float(value) for name, value in (found or {}).items()}

    def reset_metrics(self) -> None:
        """Begin the metrics anew."""
        self.wait()
        metric_states.reset(self.trained.model)

    def logs(self) -> dict[str, Any]:
        """What callbacks are told after a step: metrics so far, or what a `train_step` of its own gave. Collective."""
        return self._returned("train")[1] if self._own_step["train"] else self._read_metrics()

    def results(self, phase: Phase) -> dict[str, Any]:
        """Loss and metrics since the last reset, or what a custom step gave last, over all tasks. Collective."""
        if self._own_step[phase] and phase in self._last:  # else a restart found no step left in the epoch
            return logs_of(*self._returned(phase))
        return self._read_metrics()

    def _read_metrics(self) -> dict[str, Any]:
        return self.trained.read_metrics(self.group, often=bool(self.watched))[0]

    def _returned(self, phase: Phase) -> tuple[dict[str, Any], dict[str, Any]]:
        """The model's metrics, and what a step of its own gave, over all tasks. Collective."""
        return self.trained.read_metrics(self.group, phase, self._result(self._last[phase]), often=bool(self.watched))

    @abstractmethod
    def _run(self, phase: Phase, source: Source, work: Work) -> tuple[Any, int]:
        """Run one step on each batch of `work`: what the last one gave, for `_result`, and how many there were."""

    def _result(self, step: Any) -> Any:
        """What `step`, the last one that is done, gave: this task's part of the loss, or of each value that a custom
        step returns, by name."""
        return step

    @abstractmethod
    def _make_function(self, phase: Phase, body: Callable[..., Any], source: Source) -> Any:
        """The `tf.function` of steps of a phase on batches of `source`; `body` is the step of one replica."""

    def _function(self, phase: Phase, source: Source) -> Any:
        """The function of such steps, made once."""
        key = (phase, id(source))
        if key not in self._functions:
            body = self.trained.train_replica if phase == "train" else self.trained.evaluate_replica
            self._functions[key] = self._make_function(phase, body, source)
        return self._functions[key]


def logs_of(metrics: Mapping[str, Any], last: Mapping[str, Any]) -> dict[str, Any]:
    """Logs of a model with a step of its own: as in Keras what that gave `last`, or the `metrics` of these names.

    Also where no step updates such a metric, so that it reads zero: then there is a warning.
    """
    if last.keys() != metrics.keys():
        return dict(last)
    idle = ", ".join(name for name, value in last.items() if value and not metrics[name])
    if idle:
        warnings.warn(
            f"the model's own step returns {idle}, but updates no metric of this name, which is what Keras shows at "
            "an epoch's end: update it in the step, or return the value under another name",
            stacklevel=2,
        )
    return dict(metrics)
