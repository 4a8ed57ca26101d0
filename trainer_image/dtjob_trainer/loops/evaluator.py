# SPDX-License-Identifier: Apache-2.0
"""The evaluator: evaluates each new checkpoint without a strategy, and ends when the run is marked DONE."""

import functools
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dtjob_trainer.callbacks import keeping
from dtjob_trainer.checkpoint import directory as checkpoint
from dtjob_trainer.checkpoint import object_store, owner
from dtjob_trainer.checkpoint.done import is_done
from dtjob_trainer.checkpoint.retention import MODEL, BestCheckpoints, BestModel
from dtjob_trainer.checkpoint.state import FitState, RunState, read_state
from dtjob_trainer.checkpoint.stored import Stored
from dtjob_trainer.data.batches import Source
from dtjob_trainer.engines import choose
from dtjob_trainer.engines.engine import Engine
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
    task = here.task
    assert task is not None
    if task.checkpoint is None:
        raise EvaluatorError("replicaSpecs.evaluator needs spec.checkpoint: it evaluates what is saved there")
    if source is None:
        raise EvaluatorError("replicaSpecs.evaluator needs validation_data in fit(): it has nothing to evaluate on")
    settings = here.checkpoint
    assert settings is not None
    root, directory = task.checkpoint.directory, settings.directory
    object_store.check(directory)
    group = Group(here.strategy, None)
    building.build(trained, source, group, here.traits, trains=False)
    engine = choose.engine(trained, group, here.traits)
    best, kept = BestModel(task), BestCheckpoints(task.uid, settings)
    events = Events(f"{root}/{EVENTS_DIRECTORY}", here.warn)
    seen: set[int] = set()
    evaluated: set[int] = set()
    others, unreadable = _Others(here, root), _Unreadable(here, directory)
    here.progress.report(state="evaluating")
    while True:
        ended, passed = is_done(root, task.uid), here.next_stage_has_begun
        found = checkpoint.steps_in(directory)
        step = next_step(found, seen, task.evaluation.every)
        if step is not None and others.own_it():
            step = None
        load = functools.partial(_load, engine, directory, kept, task.anew)
        loaded = unreadable.tried(load, step, found, ended=ended or passed)
        result = _evaluate(here, engine, source, step, loaded) if loaded is not None else None
        if step is not None and (result is not None or step != found[-1]):  # only the newest is tried again
            seen.add(step)
        if step is not None and result is not None:
            metrics, earlier = result
            evaluated.add(step)
            missed = [each for each in earlier if each not in evaluated] if task.evaluation.every else []
            if missed:
                evaluated.update(missed)  # told once
                here.log(_words_of_missed(missed), level="warning", step=step)
            _keep(here, trained.model, step, metrics, best, kept, events)
        elif passed and found and step is None:  # looked at after the next stage was there: nothing newer can come
            return _history(here, trained, directory, found[-1])
        elif ended and step is None:  # looked at after the mark was there: nothing newer can come
            here.trained = True  # it has ended well: no stop that the program has answered itself
            raise SystemExit(0)
        else:
            time.sleep(POLL_SECONDS)


def next_step(found: Sequence[int], seen: Collection[int], every: bool) -> int | None:
    """The checkpoint to evaluate next, of those `found` (oldest first) and not yet `seen`; None where there is none."""
    new = [step for step in (found if every else found[-1:]) if step not in seen]
    return new[0] if new else None


def _history(here: Runtime, trained: TrainedModel, directory: str, last: int) -> Any:
    """The History of a stage that has ended with checkpoint `last`, which is loaded; the next one counts on from it."""
    stored = Stored(directory, last)
    trained.load(stored, {})
    history = trained.callbacks.History()
    history.set_model(trained.model)
    ended = read_state(stored.state, FitState, stored.name, here.task.anew if here.task is not None else "")
    history.history = keeping.decode(ended.loop.history)
    history.epoch = list(range(ended.position.first, ended.position.ended)) if ended.position is not None else []
    here.progress.steps_before += last
    return history


class _Unreadable:
    """Tells of checkpoints that cannot be read."""

    def __init__(self, here: Runtime, directory: str) -> None:
        self._here, self._directory = here, directory
        self._since: float | None = None
        """When the last checkpoint could not be read for the first time."""

    def tried(
        self, load: Callable[[int], RunState[FitState]], step: int | None, found: Sequence[int], *, ended: bool
    ) -> RunState[FitState] | None:
        """What `load` gives of checkpoint `step` of those `found`. None if it is removed or damaged, or for no step.

        - ended: whether no newer one can come. Raises EvaluatorError if the newest one then cannot be read for
          LAST_SECONDS.
        """
        if step is None:
            return None
        try:
            return load(step)
        except checkpoint.GONE as error:
            why = f"checkpoint.storage {self._directory}: ckpt-{step} cannot be read, and is not evaluated"
            if step != found[-1] and isinstance(error, checkpoint.UNREADABLE):
                self._here.log(f"{why}: {error.message}", level="warning", step=step)
            if step != found[-1] or not ended:
                return None
            now = time.monotonic()
            self._since = now if self._since is None else self._since
            if now - self._since >= LAST_SECONDS:
                raise EvaluatorError(f"{why}, although it is the last one: {error.message}") from error
            return None


class _Others:
    """Tells of another job that owns the checkpoint directory."""

    def __init__(self, here: Runtime, directory: str) -> None:
        self._here, self._directory = here, directory
        self._told = ""

    def own_it(self) -> bool:
        """Whether another job owns the directory. The log names such a job once, the status as long as it is so."""
        assert self._here.task is not None
        mark = owner.others_mark(self._directory, self._here.task.uid)
        name = owner.name_of(mark) if mark is not None else ""
        if name != self._told:
            self._told = name
            why = (
                f"{self._directory} is in use by job {name}, whose checkpoints are not evaluated here" if name else None
            )
            self._here.progress.report(message=why)
            if why is not None:
                self._here.log(why, level="warning")
        return mark is not None


def _words_of_missed(missed: Sequence[int]) -> str:
    shown = ", ".join(map(str, missed[:MISSED_SHOWN])) + (f" … {missed[-1]}" if len(missed) > MISSED_SHOWN else "")
    return (
        f"evaluation.checkpoints is Every, but {len(missed)} had been removed before this evaluator looked (of steps "
        f"{shown}); raise checkpoint.maxToKeep, or save less often"
    )


def _keep(
    here: Runtime,
    model: Any,
    step: int,
    metrics: Mapping[str, float],
    best: BestModel,
    kept: BestCheckpoints,
    events: Events,
) -> None:
    """Tell of an evaluation, log it for TensorBoard, and keep model and checkpoint where they are among the best."""
    if kept.offer(step, metrics):
        here.log("one of the best checkpoints so far, which are kept", step=step)
    step += here.progress.steps_before
    events.scalars(step, metrics)
    told: dict[str, Any] = {"step": step, "metrics": metrics}
    if best.offer(model, step, metrics):
        kept_as = f", kept as {MODEL}" if here.task is not None and here.task.evaluation.keep_model else ""
        here.log(f"the best so far{kept_as}: step {step}")
    if best.record:
        told["best"] = {"step": best.record["step"], "value": best.record["value"]}
    here.progress.report(evaluation=told)


def _load(engine: Engine, directory: str, kept: BestCheckpoints, anew: str, step: int) -> RunState[FitState]:
    """Give the model the weights of checkpoint `step`, and return its state. `anew`: as `read_state` takes it.

    Raises one of GONE if the checkpoint cannot be read.
    """
    kept.begin(step)
    stored = Stored(directory, step)
    found = read_state(stored.state, FitState, stored.name, anew)
    due = keeping.validates_on_averages([each.state for each in found.loop.callbacks])
    engine.trained.load(stored, engine.trained.averages() if due else {})
    return found


def _evaluate(
    here: Runtime, engine: Engine, source: Source, step: int | None, loaded: RunState[FitState]
) -> tuple[dict[str, float], list[int]]:
    """The metrics of checkpoint `step`, which is loaded, and the steps of earlier ones."""
    engine.reset_metrics()
    source.epoch_ends()
    size, streams = engine.most_in_one_call("evaluate", source, STEPS_PER_CALL), engine.streams(source)
    for work in whole_pass(source, engine.group, lambda: size, streams=streams):
        engine.evaluate(source, work)
    found = engine.evaluation_logs()
    metrics = {name: value for name, value in found.items() if not isinstance(value, list)}
    here.say_left_out(name for name in found if name not in metrics)
    here.log("checkpoint evaluated", step=step, values=metrics)
    return metrics, loaded.earlier
