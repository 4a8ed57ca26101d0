"""Rules about what the trainer is told: program, checkpoints, strategy options, ports; and about the failure policy."""

from __future__ import annotations

import re
from typing import Any

from dtjob.api.failure_policy import Backoff
from dtjob.api.network import Network
from dtjob.api.strategy import Strategy
from dtjob.crd.rule import Reason, Rule, Value

_FILE = "[^ ]+[.]py"
_DEVICE = "(CPU|GPU):[0-9]+"
_PARTITIONERS = ("fixedShards", "minShardBytes", "maxShardBytes")
_MODULE = "[A-Za-z_][A-Za-z0-9_]*([.][A-Za-z_][A-Za-z0-9_]*)*"
_NETWORK, _BACKOFF = Network(), Backoff()
"""With the defaults, which a rule's Python does not see filled in."""


def _with_program_only(block: str, field: str) -> Rule:
    """A field that only the trainer image's supervisor reads. Field "" is the whole block."""
    names = [name for name in (block, field) if name]
    has = " && ".join(f"has(self.{'.'.join(names[: end + 1])})" for end in range(len(names)))

    def holds(spec: Value) -> bool:
        value: Any = spec
        for name in names:
            value = None if value is None else value.get(name)
        return value is None or spec.get("program") is not None

    return Rule(
        "spec",
        f"has(self.program) || !({has})",
        holds,
        f"{'.'.join(names)} is for dtjob's trainer, which runs only where program is set: set program, or remove it",
        ".".join(names),
        Reason.FORBIDDEN,
    )


def _option_of(option: str, strategies: tuple[Strategy, ...]) -> Rule:
    names = [strategy.value for strategy in strategies]
    listed = " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return Rule(
        "spec",
        f"!has(self.strategyOptions) || !has(self.strategyOptions.{option}) || "
        f"self.strategy in [{', '.join(repr(name) for name in names)}]",
        lambda spec: option not in (spec.get("strategyOptions") or {}) or spec["strategy"] in names,
        f"{option} is an option of strategy {listed} only: remove it, or set that strategy",
        f"strategyOptions.{option}",
        Reason.FORBIDDEN,
    )


def _directory(cel: str, holds_for: re.Pattern[str], message: str) -> Rule:
    return Rule(
        "spec.checkpoint",
        cel,
        lambda checkpoint: holds_for.search(checkpoint["directory"]) is not None,
        message,
        "directory",
    )


def _on_bucket(checkpoint: Value) -> bool:
    return str(checkpoint["directory"]).startswith("gs://")


CHECKPOINT_RULES = (
    _directory(
        "self.directory.startsWith('/') || self.directory.contains('://')",
        re.compile("^/|://"),
        "the directory must be an absolute path, such as /checkpoints (or gs://BUCKET/PATH)",
    ),
    _directory(
        "!self.directory.startsWith('s3://')",
        re.compile("^(?!s3://)"),
        "TensorFlow cannot write to s3:// buckets: mount the bucket with volume (a CSI driver) and give its path",
    ),
    _directory(
        "!self.directory.contains('://') || self.directory.startsWith('s3://') || "
        "self.directory.matches('^gs://[^/]+') || self.directory.startsWith('/')",
        re.compile("^(?!.*://)|^s3://|^gs://[^/]+|^/", re.S),
        "of URIs only gs://BUCKET/PATH is taken: give that, or an absolute path, such as /checkpoints",
    ),
    Rule(
        "spec.checkpoint",
        "!has(self.volume) || !self.directory.startsWith('gs://')",
        lambda checkpoint: checkpoint.get("volume") is None or not _on_bucket(checkpoint),
        "a gs:// directory takes no volume: remove volume, or give the path at which to mount it",
        "volume",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec.checkpoint",
        "!has(self.volume) || !(self.directory.matches('^/*$') || self.directory.matches('^/.*:'))",
        lambda checkpoint: checkpoint.get("volume") is None or not re.search("^/*$|^/.*:", checkpoint["directory"]),
        "the volume is mounted at directory, which must be a path below / without a colon, such as /checkpoints",
        "directory",
    ),
    Rule(
        "spec.checkpoint",
        "has(self.volume) || self.mount != 'All'",
        lambda checkpoint: checkpoint.get("volume") is not None or checkpoint.get("mount") != "All",
        "mount: All says which pods mount the volume, and there is none: add volume, or remove mount",
        "mount",
        Reason.FORBIDDEN,
    ),
)

TRAINER_RULES = (
    Rule(
        "spec.program",
        f"self.entry.matches('^({_FILE}|{_MODULE})$')",
        lambda program: re.fullmatch(f"{_FILE}|{_MODULE}", program["entry"]) is not None,
        "the entry must be a Python file (ends in .py) or a module's name (trainer.main); arguments go into args",
        "entry",
    ),
    *(_with_program_only("checkpoint", field) for field in ("everySteps", "everySeconds", "keep", "async")),
    _with_program_only("strategyOptions", ""),
    _with_program_only("network", "statusPort"),
    _with_program_only("evaluation", ""),
    _with_program_only("tensorBoard", ""),
    Rule(
        "spec",
        "!has(self.tensorBoard) || has(self.checkpoint)",
        lambda spec: spec.get("tensorBoard") is None or spec.get("checkpoint") is not None,
        "logs for TensorBoard lie beside the checkpoints, and this job saves none: add checkpoint.directory, or remove "
        "tensorBoard",
        "tensorBoard",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        "!has(self.program) || !has(self.replicas.evaluator) || has(self.checkpoint)",
        lambda spec: (
            spec.get("program") is None or "evaluator" not in spec["replicas"] or spec.get("checkpoint") is not None
        ),
        "the evaluator evaluates checkpoints, and this job saves none: add checkpoint.directory, or remove evaluator",
        "replicas.evaluator",
        Reason.FORBIDDEN,
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
        lambda options: options.get("device") is None or re.fullmatch(_DEVICE, options["device"]) is not None,
        "a device is its kind and number, such as GPU:0 or CPU:0",
        "device",
    ),
    Rule(
        "spec.strategyOptions.partitioner",
        "[has(self.fixedShards), has(self.minShardBytes), has(self.maxShardBytes)].filter(x, x).size() == 1",
        lambda cut: sum(cut.get(kind) is not None for kind in _PARTITIONERS) == 1,
        f"a partitioner is exactly one of {', '.join(_PARTITIONERS)}: give one, such as "
        "{minShardBytes: 262144, maxShards: 2}",
    ),
    Rule(
        "spec.strategyOptions.partitioner",
        "!has(self.maxShards) || !has(self.fixedShards)",
        lambda cut: cut.get("maxShards") is None or cut.get("fixedShards") is None,
        "fixedShards says how many shards there are: remove maxShards",
        "maxShards",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        "!has(self.evaluation) || has(self.replicas.evaluator)",
        lambda spec: spec.get("evaluation") is None or "evaluator" in spec["replicas"],
        "evaluation is what the evaluator does, and this job has none: add `replicas.evaluator: {}`, or remove it",
        "evaluation",
        Reason.FORBIDDEN,
    ),
    Rule(
        "spec",
        f"!has(self.program) || self.network.port != (has(self.network.statusPort) ? self.network.statusPort : "
        f"{_NETWORK.status_port})",
        lambda spec: spec.get("program") is None or _ports_differ(spec.get("network") or {}),
        f"port and statusPort (by default {_NETWORK.status_port}) must differ: give one of them another number",
        "network.port",
    ),
    Rule(
        "spec.failurePolicy.backoff",
        "self.maxSeconds >= self.initialSeconds",
        lambda backoff: (
            backoff.get("maxSeconds", _BACKOFF.max_seconds) >= backoff.get("initialSeconds", _BACKOFF.initial_seconds)
        ),
        f"maxSeconds (by default {_BACKOFF.max_seconds}) is below initialSeconds (by default "
        f"{_BACKOFF.initial_seconds}): raise it, or lower initialSeconds",
        "maxSeconds",
    ),
)


def _ports_differ(network: Value) -> bool:
    return bool(network.get("port", _NETWORK.port) != network.get("statusPort", _NETWORK.status_port))
