# SPDX-License-Identifier: Apache-2.0
"""The evaluator: evaluates each new checkpoint without a strategy, and ends when the run is marked DONE."""

import time
from collections.abc import Mapping
from typing import Any

from dtjob_trainer.callbacks import keeping
from dtjob_trainer.checkpoint import directory as checkpoint
from dtjob_trainer.checkpoint import object_store, owner
from dtjob_trainer.checkpoint.done import is_done
from dtjob_trainer.checkpoint.retention import MODEL, BestCheckpoints, BestModel
from dtjob_trainer.checkpoint.state import FitState, read_state
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.data.batches import Source
from dtjob_trainer.errors import EvaluatorError
from dtjob_trainer.loops import building
from dtjob_trainer.models.compiled import TrainedModel
from dtjob_trainer.passes.lookahead import whole_pass
from dtjob_trainer.process.runtime import Runtime
from dtjob_trainer.strategies.collective import Group
from dtjob_trainer.tensorboard.event_file import Events

POLL_SECONDS = 0.5
LAST_SECONDS = 5.0
"""For so long the last checkpoint of a run or stage is tried again, if it cannot be read."""
STEPS_PER_CALL = 100
"""Batches of an evaluation that are run in one call, where that is possible."""
MISSED_SHOWN = 20
"""Of checkpoints that were missed, how many are named."""
EVENTS_DIRECTORY = "events/evaluator"
"""Where the logs for TensorBoard are, below the checkpoint directory."""


def follow(here: Runtime, trained: TrainedModel, source: Source | None) -> Any:
    """Evaluate `trained` on `source` at each checkpoint to come of the present stage of the program.

    Returns Keras's History of the stage once the next one has begun, with its end in `trained`. Leaves by
    SystemExit(0) when the run has ended.

    Unless `evaluation.checkpoints` is Every, those that are outdated before they are looked at are passed over; the
    last one never is. Where it is Every, the log names those that were removed before they were looked at. Logs for
    TensorBoard go to events/evaluator, the best model to best.keras. While another job owns the directory, nothing is
    evaluated. Raises EvaluatorError if the last checkpoint cannot be read.
    """
    assert here.task is not None
    if here.task.checkpoint is None:
        raise EvaluatorError("replicaSpecs.evaluator needs spec.checkpoint: it evaluates what is saved there")
    if source is None:
        raise EvaluatorError("replicaSpecs.evaluator needs validation_data in fit(): it has nothing to evaluate on")
    return _Evaluator(here, trained, source).follow()


class _Evaluator:
    def __init__(self, here: Runtime, trained: TrainedModel, source: Source) -> None:
        assert here.task is not None
        assert here.task.checkpoint is not None
        assert here.checkpoint is not None
        self._here, self._task, self._trained, self._source = here, here.task, trained, source
        self._root, self._directory = here.task.checkpoint.directory, here.checkpoint.directory
        object_store.check(self._directory)
        group = Group(here.strategy, None)
        building.build(trained, source, group, here.traits, trains=False)
        self._engine = building.engine_of(trained, group, here.traits)
        self._best, self._kept = BestModel(self._task), BestCheckpoints(self._task.uid, here.checkpoint)
        self._events = Events(f"{self._root}/{EVENTS_DIRECTORY}", here.warn)
        self._evaluated: set[int] = set()
        self._owner = ""  # the other job that owns the directory, as it was told of last
        self._unreadable_since: float | None = None  # when the last checkpoint could not be read for the first time

    def follow(self) -> Any:
        here, every = self._here, self._task.evaluation.every
        seen: set[int] = set()
        here.progress.report(state="evaluating")
        while True:
            ended, passed = is_done(self._root, self._task.uid), here.next_stage_has_begun
            found = checkpoint.steps_in(self._directory)
            step = next((each for each in (found if every else found[-1:]) if each not in seen), None)
            if step is not None and self._others_own_it():
                step = None
            earlier = None if step is None else self._load(step, step == found[-1], ended=ended or passed)
            if step is not None and (earlier is not None or step != found[-1]):  # only the newest is tried again
                seen.add(step)
            if step is not None and earlier is not None:
                metrics = self._evaluate(step)
                self._evaluated.add(step)
                missed = [str(each) for each in earlier if every and each not in self._evaluated]
                self._evaluated.update(earlier)  # told once
                if missed:
                    shown = ", ".join(missed[:MISSED_SHOWN]) + f" … {missed[-1]}" * (len(missed) > MISSED_SHOWN)
                    here.warn(
                        f"evaluation.checkpoints is Every, but {len(missed)} had been removed before this evaluator "
                        f"looked (of steps {shown}); raise checkpoint.maxToKeep, or save less often"
                    )
                self._keep(step, metrics)
            elif passed and found and step is None:  # looked at after the next stage was there: nothing newer can come
                return self._history(found[-1])
            elif ended and step is None:  # looked at after the mark was there: nothing newer can come
                here.trained = True  # it has ended well: no stop that the program has answered itself
                raise SystemExit(0)
            else:
                time.sleep(POLL_SECONDS)

    def _others_own_it(self) -> bool:
        """Whether another job owns the directory. The log names such a job once, the status as long as it is so."""
        mark = owner.others_mark(self._root, self._task.uid)
        name = owner.name_of(mark) if mark is not None else ""
        if name != self._owner:
            self._owner = name
            why = f"{self._root} is in use by job {name}, whose checkpoints are not evaluated here" if name else None
            self._here.progress.report(message=why)
            if why is not None:
                self._here.log(why, level="warning")
        return mark is not None

    def _load(self, step: int, newest: bool, *, ended: bool) -> list[int] | None:
        """Give the model the weights of checkpoint `step`; the steps of earlier ones. None: it is removed or damaged.

        - ended: whether no newer one can come. Raises EvaluatorError if the newest one then cannot be read for
          LAST_SECONDS.
        """
        try:
            self._kept.begin(step)
            stored = Stored(self._directory, step)
            state = read_state(stored.state, FitState, stored.name, self._task.anew)
            on_averages = keeping.validates_on_averages([each.state for each in state.loop.callbacks])
            self._trained.load(stored, self._trained.averages() if on_averages else {})
            return state.earlier
        except checkpoint.GONE as error:
            why = f"checkpoint.storage {self._directory}: ckpt-{step} cannot be read, and is not evaluated"
            if not newest and isinstance(error, checkpoint.UNREADABLE):
                self._here.log(f"{why}: {error.message}", level="warning", step=step)
            if newest and ended:
                now = time.monotonic()
                self._unreadable_since = self._unreadable_since or now
                if now - self._unreadable_since >= LAST_SECONDS:
                    raise EvaluatorError(f"{why}, although it is the last one: {error.message}") from error
            return None

    def _evaluate(self, step: int) -> dict[str, float]:
        """The metrics of checkpoint `step`, which is loaded."""
        engine, source = self._engine, self._source
        engine.reset_metrics()
        source.epoch_ends()
        size, streams = engine.most_in_one_call("evaluate", source, STEPS_PER_CALL), engine.streams(source)
        for work in whole_pass(source, engine.group, lambda: size, streams=streams):
            engine.run("evaluate", source, work)
        found = engine.results("evaluate")
        metrics = {name: value for name, value in found.items() if not isinstance(value, list)}
        self._here.say_left_out(name for name in found if name not in metrics)
        self._here.log("checkpoint evaluated", step=step, values=metrics)
        return metrics

    def _keep(self, step: int, metrics: Mapping[str, float]) -> None:
        """Tell of an evaluation, log it for TensorBoard, and keep model and checkpoint if they are among the best."""
        here, best = self._here, self._best
        if self._kept.offer(step, metrics):
            here.log("one of the best checkpoints so far, which are kept", step=step)
        step += here.progress.steps_before
        self._events.scalars(step, metrics)
        told: dict[str, Any] = {"step": step, "metrics": metrics}
        if best.offer(self._trained.model, step, metrics):
            kept_as = f", kept as {MODEL}" if self._task.evaluation.keep_model else ""
            here.log(f"the best so far{kept_as}: step {step}")
        if best.record:
            told["best"] = {"step": best.record["step"], "value": best.record["value"]}
        here.progress.report(evaluation=told)

    def _history(self, last: int) -> Any:
        """The History of a stage that has ended with checkpoint `last`, which is loaded; the next counts on from it."""
        stored = Stored(self._directory, last)
        self._trained.load(stored, {})
        history = self._trained.callbacks.History()
        history.set_model(self._trained.model)
        ended = read_state(stored.state, FitState, stored.name, self._task.anew)
        history.history = keeping.decode(ended.loop.history)
        history.epoch = list(range(ended.position.first, ended.position.ended)) if ended.position is not None else []
        self._here.progress.steps_before += last
        return history
