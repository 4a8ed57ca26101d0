# SPDX-License-Identifier: Apache-2.0
"""Rules about what the trainer is told: program, checkpoints and strategy options."""

from dtjob.crd.rule import Reason, Rule

_FILE = "[^ ]+[.]py"
_DEVICE = "(CPU|GPU):[0-9]+"
_PARTITIONERS = ("fixedShards", "minShardBytes", "maxShardBytes")
_MODULE = "[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*"


TRAINER_RULES = (
    Rule(
        "spec.program",
        f"self.entrypoint.matches('^({_FILE}|{_MODULE})$')",
        "must be a Python file (train.py) or the name of a module (trainer.main); arguments go into args",
        "entrypoint",
    ),
    Rule(
        "spec",
        "!has(self.program) || !has(self.replicaSpecs.evaluator) || has(self.checkpoint)",
        "the evaluator evaluates checkpoints, and this job saves none: add checkpoint, or remove evaluator",
        "replicaSpecs.evaluator",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        "!has(self.replicaSpecs.data) || has(self.program)",
        "data workers run dtjob's trainer: add program, or remove data",
        "replicaSpecs.data",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        "!has(self.program) || !has(self.checkpoint) || !has(self.checkpoint.keepBest) || "
        "(has(self.evaluation) && has(self.evaluation.best))",
        "keepBest needs a metric of the evaluator: add `evaluation.best`, such as {metric: accuracy, mode: Max}, or "
        "remove keepBest",
        "checkpoint.keepBest",
        Reason.FORBIDDEN,
    ),
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
)
