# SPDX-License-Identifier: Apache-2.0
"""The end of a run: one JSON object, and the same for people. Pure."""

import math
import shlex
import signal
from pathlib import Path
from typing import Any

from dtjob.api.phase import Phase
from dtjob.api.status.status import Status
from dtjob.local.display.snapshot import ACCURACIES, Snapshot, metrics_text
from dtjob.objects import topology
from dtjob.times import duration

INTERRUPTED = "Interrupted"
NAME_WIDTH = len("validation accuracy") + 1
SHOWN_PART, SHOWN_SECONDS = 0.01, 0.05
"""A part of goodput is left out below this share of all seconds, and below these seconds, which are shown as 0.0 s."""


def finite(value: Any) -> Any:
    """`value` (as JSON has it) with None in place of NaN and infinities, which are no JSON: a loss that diverged."""
    if isinstance(value, dict):
        return {name: finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def summary(snapshot: Snapshot, run_directory: Path, resumed: bool, interrupted: int | None) -> dict[str, Any]:
    """The run's result: what `dtjob run -o json` prints.

    `phase` is Interrupted or that in which the job ended; `metrics` are the last epoch's at the chief task, `val_` ones
    included; `restarts.byCause` counts incidents by the first cause, and crashes in place;
    `recoverySeconds` are from a failure's being observed to the first training step after it; `goodput` is the status'
    (docs/jobs/goodput.md), left out where not all tasks ever ran.
    """
    chief, status, task = snapshot.chief, snapshot.status, topology.chief_task(snapshot.job)
    attempts = Status.read({"internal": status.get("internal")}).internal.attempts
    restarts = status.get("restarts") or {}
    by_cause = {cause: int(count) for cause, count in (restarts.get("causes") or {}).items()}
    if restarts.get("evaluator"):  # which training does not feel
        by_cause["Evaluator"] = int(restarts["evaluator"])
    result: dict[str, Any] = {
        "job": snapshot.job.metadata.name,
        "phase": INTERRUPTED if interrupted is not None else snapshot.phase,
        "reason": signal.Signals(interrupted).name if interrupted is not None else status.get("reason", ""),
        "message": "" if interrupted is not None else status.get("message", ""),
        "metrics": dict(chief.get("metrics") or {}),
        "evaluation": dict(snapshot.evaluation),
        "steps": chief.get("step"),
        "totalSteps": chief.get("totalSteps"),
        "lastStepLoss": chief.get("loss"),
        "epochs": chief.get("epoch"),
        "totalEpochs": chief.get("totalEpochs"),
        "restarts": {"total": sum(by_cause.values()), "byCause": by_cause},
        "recoverySeconds": list(snapshot.recovery_seconds),
        "checkpoint": chief.get("checkpoint"),
        "model": chief.get("model"),
        "resume": chief.get("resume"),
        "resumed": resumed,
        "seconds": round(snapshot.elapsed, 1),
        "runDirectory": str(run_directory),
        "log": str(run_directory / "logs" / f"{topology.pod_name(snapshot.job, task, attempts.of(task.id))}.log"),
    }
    if goodput := status.get("goodput"):
        result["goodput"] = goodput
    if incidents := status.get("incidents"):
        result["incidents"] = incidents
    failure = status.get("lastFailure")
    if failure:
        result["lastFailure"] = failure
    return result


def accuracy(result: dict[str, Any]) -> tuple[str, float] | None:
    """The accuracy on data that the model was not trained on, and who measured it; None if nobody did."""
    metrics, evaluation = result["metrics"], result["evaluation"].get("metrics") or {}
    validation = [name for name in ACCURACIES if name.startswith("val_")]
    for title, source, names in (
        ("validation accuracy", metrics, validation),
        ("evaluator accuracy", evaluation, ACCURACIES),
    ):
        for name in names:
            if name in source:
                return title, float(source[name])
    return None


def summary_text(result: dict[str, Any], logs: Path, command: str) -> list[str]:
    """The result in lines. `command` is what goes on with a run that has not finished."""
    took = duration(result["seconds"])
    heads = {
        Phase.SUCCEEDED: f"{result['job']} has succeeded in {took}",
        Phase.FAILED: f"{result['job']} has failed after {took}: {result['message'] or result['reason']}",
        INTERRUPTED: f"{result['job']} was stopped by {result['reason']} after {took}; no process is left",
    }
    lines = [heads.get(result["phase"], f"{result['job']} is {result['phase']}")]
    held_out = accuracy(result)
    if held_out is not None:
        lines.append(_row(held_out[0], f"{held_out[1]:.4f}"))
    lines += _progress(result)
    causes = ", ".join(f"{cause} {count}" for cause, count in result["restarts"]["byCause"].items())
    lines.append(_row("restarts", f"{result['restarts']['total']}" + (f" ({causes})" if causes else "")))
    if result["recoverySeconds"]:
        each = ", ".join(f"{seconds:.1f} s" for seconds in result["recoverySeconds"])
        lines.append(_row("recovery", f"{each} from the failure to the first new step"))
    if result["resume"] == "approximate":
        lines.append(_row("resume", f"approximate: a restart can change the numbers; logs in {logs} say why"))
    if (text := _goodput(result.get("goodput") or {})) is not None:
        lines.append(_row("goodput", text))
    lines += (result["phase"] in (Phase.FAILED, INTERRUPTED) and _failure(result, logs)) or _written(result)
    if result["phase"] == INTERRUPTED:
        saved = result["checkpoint"]
        where = f"from the checkpoint at step {saved['step']}" if saved else "from the start: no checkpoint was saved"
        lines.append(_row("go on", f"{command}   (goes on {where})"))
    lines.append(_row("run", result["runDirectory"]))
    return lines


def _progress(result: dict[str, Any]) -> list[str]:
    """The last epoch with its metrics, and the last step with its loss: these are two numbers."""
    lines, metrics = [], metrics_text(result["metrics"])
    if result["epochs"] is not None and result["totalEpochs"]:
        place = f"{result['epochs']} of {result['totalEpochs']}"
        lines.append(_row("last epoch", f"{place}: {metrics}" if metrics else place))
    elif metrics:
        lines.append(_row("metrics", metrics))
    if result["steps"] is not None:
        place = f"{result['steps']}" + (f" of {result['totalSteps']}" if result["totalSteps"] else "")
        loss = result["lastStepLoss"]
        lines.append(_row("last step", place if loss is None else f"{place}: loss {loss:.4g}"))
    return lines


def _goodput(goodput: dict[str, Any]) -> str | None:
    """How much of the time went into steps that stand, and what else it went into, the most first."""
    if goodput.get("percentage") is None:
        return None
    seconds = goodput.get("seconds") or {}
    others = sorted(((float(value), name) for name, value in seconds.items() if name != "kept"), reverse=True)
    least = max(SHOWN_PART * sum(float(value) for value in seconds.values()), SHOWN_SECONDS)
    lost = ", ".join(f"{words(name)} {value:.1f} s" for value, name in others if value >= least)
    return f"{goodput['percentage']}% of the time since all tasks ran" + (f"; {lost}" if lost else "")


def words(name: str) -> str:
    """A name of the status in words: `waiting for pods`."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


def _failure(result: dict[str, Any], logs: Path) -> list[str]:
    """The log of the task that failed last. The first line of a failed run tells the exception, so the end of the log
    is shown only if there was none. An interrupted run may have had a failure before."""
    failure = result.get("lastFailure")
    if not failure:
        return []
    log = _row("log", str(logs / f"{failure['pod']}.log"))
    if result["phase"] == INTERRUPTED:
        return [_row("failure", f"{failure['task']} {failure['message']}"), log]
    last = [] if failure.get("exception") else str(failure.get("logTail", "")).splitlines()[-8:]
    return [log, *(f"  | {line}" for line in last)]


def _written(result: dict[str, Any]) -> list[str]:
    """Where the log of the chief task and the model are, and the command that shows the events."""
    log = [_row("log", result["log"])]
    model = [_row("model", str(result["model"]))] if result["model"] else []
    events = result.get("events")
    return log + model + ([_row("events", shlex.join(["tensorboard", "--logdir", events]))] if events else [])


def _row(name: str, text: str) -> str:
    return f"  {name:<{NAME_WIDTH}} {text}"
