"""The evaluator: evaluates each new checkpoint without a strategy, and ends when the run is marked DONE."""

from __future__ import annotations

import time
from typing import Any, NoReturn

from dtjob_trainer import checkpoint, steps
from dtjob_trainer.collective import Group
from dtjob_trainer.runtime import Runtime
from dtjob_trainer.sources import Source
from dtjob_trainer.state import load_for_evaluation

POLL_SECONDS = 0.5


class EvaluatorError(ValueError):
    """The evaluator cannot do its work as the program and job are written; the message says what to change."""


def follow(here: Runtime, model: Any, source: Source | None) -> NoReturn:
    """Evaluate `model` on `source` at the newest checkpoint, again and again; leaves by SystemExit(0) at the end.

    Checkpoints that are outdated before they are looked at are passed over; the last one never is.
    """
    task = here.task
    assert task is not None
    if task.checkpoint is None:
        raise EvaluatorError("replicas.evaluator needs spec.checkpoint: it evaluates what is saved there")
    if source is None:
        raise EvaluatorError("replicas.evaluator needs validation_data in fit(): it has nothing to evaluate on")
    directory = task.checkpoint.directory
    checkpoint.check_directory(directory)
    steps.build(model, *source.spec())
    engine = steps.Engine(model, Group(here.strategy, None), own_step=False)
    evaluated = -1
    here.progress.report(state="evaluating")
    while True:
        mark = checkpoint.read_done(directory)
        done = mark is not None and mark.get("uid") == task.uid
        found = checkpoint.steps_in(directory)
        if found and found[-1] != evaluated and _evaluate(here, engine, source, directory, found[-1]):
            evaluated = found[-1]
        elif done:  # looked at after the mark was there: nothing newer can come
            raise SystemExit(0)
        else:
            time.sleep(POLL_SECONDS)


def _evaluate(here: Runtime, engine: steps.Engine, source: Source, directory: str, step: int) -> bool:
    """Evaluate checkpoint `step`; False where it was removed meanwhile."""
    try:
        arrays, _ = checkpoint.read(directory, step)
    except checkpoint.GONE:
        return False
    load_for_evaluation(engine.model, arrays)
    engine.reset_metrics()
    for batch in source.epoch(0, 0):
        engine.evaluate(source, batch.inputs, batch.count, batch.total)
    metrics = engine.read_metrics()
    here.progress.report(evaluation={"step": step, "metrics": metrics})
    here.log(f"checkpoint {step}  " + "  ".join(f"{name} {value:.4f}" for name, value in metrics.items()))
    return True
