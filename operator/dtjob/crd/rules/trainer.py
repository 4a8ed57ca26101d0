# SPDX-License-Identifier: Apache-2.0
"""Rules about what the trainer is told: program, checkpoints, strategy options, ports; and about the failure policy."""

from dtjob.api.spec.checkpoint import Checkpoint
from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.spec.strategy import Strategy
from dtjob.crd.rule import Reason, Rule, default_of

_FILE = "[^ ]+[.]py"
_DEVICE = "(CPU|GPU):[0-9]+"
_PARTITIONERS = ("fixedShards", "minShardBytes", "maxShardBytes")
_MODULE = "[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*"
_INITIAL, _MAX = (default_of(Backoff, field) for field in ("initialSeconds", "maxSeconds"))


def _if_there(block: str) -> str:
    """The frame of rules about this block of the spec, `b`."""
    return f"!has(self.{block}) || [self.{block}].all(b, {{}})"


def _only_with_program(block: str, field: str, unset: str) -> Rule:
    """A field that only dtjob's trainer reads. Without program `unset` must hold of its block, `b`."""
    path = ".".join(filter(None, (block, field)))
    return Rule(
        "spec",
        f"has(self.program) || {unset}",
        f"{path} has no effect without program: set program, or remove it",
        path,
        Reason.FORBIDDEN,
        frame=_if_there(block),
    )


def _option_of(option: str, strategies: tuple[Strategy, ...]) -> Rule:
    names = [strategy.value for strategy in strategies]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return Rule(
        "spec",
        f"!has(b.{option}) || self.strategy in [{', '.join(repr(name) for name in names)}]",
        f"{option} is an option of strategy {listed} only: remove it, or set that strategy",
        f"strategyOptions.{option}",
        Reason.FORBIDDEN,
        frame=_if_there("strategyOptions"),
    )


TRAINER_RULES = (
    Rule(
        "spec.program",
        f"self.entrypoint.matches('^({_FILE}|{_MODULE})$')",
        "must be a Python file (train.py) or the name of a module (trainer.main); arguments go into args",
        "entrypoint",
    ),
    *(
        _only_with_program("checkpoint", name, f"!has(b.{name})")
        for name in ("everyEpochs", "everySteps", "keepEverySteps", "keepBest")
    ),
    *(
        _only_with_program("checkpoint", name, f"b.{name} == {default_of(Checkpoint, name)!r}")
        for name in ("everySeconds", "maxToKeep", "writeMode")  # nobody reads them: then they keep their defaults
    ),
    *(_only_with_program(block, "", "false") for block in ("strategyOptions", "evaluation", "tensorBoard")),
    Rule(
        "spec",
        "has(self.checkpoint)",
        "logs for TensorBoard are written beside the checkpoints, and this job saves none: add checkpoint, or remove "
        "tensorBoard",
        "tensorBoard",
        Reason.FORBIDDEN,
        frame=_if_there("tensorBoard"),
    ),
    Rule(
        "spec",
        "!has(self.program) || !has(self.replicaSpecs.evaluator) || has(self.checkpoint)",
        "the evaluator evaluates checkpoints, and this job saves none: add checkpoint, or remove evaluator",
        "replicaSpecs.evaluator",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec.checkpoint",
        "!has(self.keepEverySteps) || !has(self.everySteps) || self.keepEverySteps >= self.everySteps",
        "keepEverySteps is below everySteps, so that every checkpoint is kept: raise it, or lower everySteps",
        "keepEverySteps",
    ),
    Rule(
        "spec",
        "!has(b.keepBest) || (has(self.evaluation) && has(self.evaluation.best))",
        "keepBest needs a metric of the evaluator: add `evaluation.best`, such as {metric: accuracy, mode: Max}, or "
        "remove keepBest",
        "checkpoint.keepBest",
        Reason.FORBIDDEN,
        frame=_if_there("checkpoint"),
    ),
    _option_of("communication", (Strategy.MULTI_WORKER_MIRRORED,)),
    _option_of("crossDeviceOps", (Strategy.MIRRORED,)),
    _option_of("logicalCPUs", (Strategy.ONE_DEVICE, Strategy.MIRRORED, Strategy.CENTRAL_STORAGE)),
    _option_of("device", (Strategy.ONE_DEVICE,)),
    _option_of("partitioner", (Strategy.PARAMETER_SERVER,)),
    _option_of("tpu", (Strategy.TPU,)),
    Rule(
        "spec.strategyOptions",
        f"!has(self.device) || self.device.matches('^({_DEVICE})$')",
        "must be a device's kind and number, such as GPU:0 or CPU:0",
        "device",
    ),
    Rule(
        "spec.strategyOptions.partitioner",
        "[has(self.fixedShards), has(self.minShardBytes), has(self.maxShardBytes)].filter(x, x).size() == 1",
        f"set exactly one of {', '.join(_PARTITIONERS)}, such as {{minShardBytes: 262144, maxShards: 2}}",
    ),
    Rule(
        "spec.strategyOptions.partitioner",
        "!has(self.maxShards) || !has(self.fixedShards)",
        "fixedShards is already the number of shards: remove maxShards",
        "maxShards",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        "has(self.replicaSpecs.evaluator)",
        "this job has no evaluator: add `replicaSpecs.evaluator: {}`, or remove evaluation",
        "evaluation",
        Reason.FORBIDDEN,
        frame=_if_there("evaluation"),
    ),
    Rule(
        "spec.failurePolicy.backoff",
        "self.maxSeconds >= self.initialSeconds",
        f"maxSeconds (by default {_MAX}) is below initialSeconds (by default {_INITIAL}): raise it, or lower "
        "initialSeconds",
        "maxSeconds",
    ),
)
