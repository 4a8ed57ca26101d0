# SPDX-License-Identifier: Apache-2.0
"""What a manifest says in vain, in CEL as the other rules. `dtjob validate` and `dtjob submit` warn of it.

An API server takes such a manifest: the job trains as it would without these fields.
"""

from collections.abc import Iterator

from dtjob.api.spec.checkpoint import Checkpoint
from dtjob.api.spec.failure_policy import Backoff
from dtjob.api.spec.failure_rules import ConditionStatus, RuleAction
from dtjob.api.spec.replica_specs import MAX_REPLICAS, Role
from dtjob.api.spec.scheduling import GangProvider
from dtjob.api.spec.strategy import Strategy
from dtjob.crd.rule import Rule, default_of

PEER_LOST = 75
"""With it a training process ends that has lost a peer: its supervisor starts it again in its container."""
STALLED = "Stalled"
"""The reason of a container that ended over a stall."""
_POLICY = "failurePolicy"
_RULES = f"spec.{_POLICY}.rules"
_STALL = f"{_POLICY}.stallTimeoutSeconds"
_STORAGE = "spec.checkpoint.storage"
_NO_FAILURE = ("ContainerCreating", "PodInitializing", "Completed")
"""Reasons through which every pod passes."""
_OURS = {
    "hostname": "remove it",
    "subdomain": "remove it",
    "restartPolicy": "remove it and set spec.failurePolicy",
}
"""Fields of a pod that dtjob sets whatever a template says."""
_SINGLE = (Strategy.ONE_DEVICE, Strategy.MIRRORED, Strategy.CENTRAL_STORAGE)
_OPTIONS = {
    "communication": (Strategy.MULTI_WORKER_MIRRORED,),
    "crossDeviceOps": (Strategy.MIRRORED,),
    "logicalCPUs": _SINGLE,
    "device": (Strategy.ONE_DEVICE,),
    "partitioner": (Strategy.PARAMETER_SERVER,),
    "tpu": (Strategy.TPU,),
}
"""Options of strategies, each with the strategies that read the option."""


def _only_with_program() -> Iterator[Rule]:
    """Fields that only dtjob's trainer reads. Fields with a default count if they differ from the default."""
    kept = {f"checkpoint.{name}": default_of(Checkpoint, name) for name in ("everySeconds", "maxToKeep", "writeMode")}
    unset = [f"checkpoint.{name}" for name in ("everyEpochs", "everySteps", "keepEverySteps", "keepBest")]
    blocks = ("strategyOptions", "evaluation", "tensorBoard")
    for path in (*unset, *kept, *blocks):
        block = "" if path in blocks else "!has(self.checkpoint) || "
        absent = f"self.{path} == {kept[path]!r}" if path in kept else f"!has(self.{path})"
        said = f"{path} has no effect without program: set program, or remove it"
        yield Rule("spec", f"has(self.program) || {block}{absent}", said, path)


def _options() -> Iterator[Rule]:
    for option, strategies in _OPTIONS.items():
        *others, last = [strategy.value for strategy in strategies]
        listed = f"{', '.join(others)} and {last}" if others else last
        yield Rule(
            "spec",
            f"!has(self.strategyOptions) || !has(self.strategyOptions.{option}) || self.strategy in {[*others, last]}",
            f"{option} is an option of strategy {listed} only: remove it, or set that strategy",
            f"strategyOptions.{option}",
        )


def _tasks_of(role: Role) -> str:
    """CEL: the most tasks of this role that there may be."""
    block, policy = f"self.replicaSpecs.{role}", "self.elasticPolicy"
    number = "1" if role is Role.CHIEF else f"{block}.replicas"
    if role is Role.WORKER:
        number = f"(has({policy}) ? (has({policy}.maxReplicas) ? {policy}.maxReplicas : {MAX_REPLICAS}) : {number})"
    return f"(has({block}) ? {number} : 0)"


_TASKS = " + ".join(_tasks_of(role) for role in Role if role.trains)


def _scheduling() -> Iterator[Rule]:
    for name in ("gang", "topology"):
        said = f"only one pod of this job trains: remove {name}"
        yield Rule("spec", f"!has(self.scheduling.{name}) || {_TASKS} > 1", said, f"scheduling.{name}")
    for block, provider in (("volcano", GangProvider.VOLCANO), ("coscheduling", GangProvider.COSCHEDULING)):
        yield Rule(
            "spec.scheduling.gang",
            f"!has(self.{block}) || (has(self.provider) && self.provider == '{provider}')",
            f"these are options of provider {provider}: set provider to {provider}, or remove {block}",
            block,
        )


def _of_rules(cel: str, message: str) -> Rule:
    """What holds of the failure policy's rules, `rules`."""
    frame = f"!has(self.{_POLICY}.rules) || [self.{_POLICY}.rules].all(rules, {{}})"
    return Rule("spec", cel, message, f"{_POLICY}.rules", frame=frame)


def _before_the_deadline(path: str) -> Rule:
    cel = f"!has(self.{path}) || !has(self.activeDeadlineSeconds) || self.{path} < self.activeDeadlineSeconds"
    said = "must be less than activeDeadlineSeconds, which fails the job first: reduce it, or remove it"
    return Rule("spec", cel, said, path)


WARNINGS: tuple[Rule, ...] = (
    *_only_with_program(),
    *_options(),
    Rule(
        "spec",
        "!has(self.tensorBoard) || has(self.checkpoint)",
        "logs for TensorBoard are written beside the checkpoints, and this job saves none: add checkpoint, or remove "
        "tensorBoard",
        "tensorBoard",
    ),
    Rule(
        "spec",
        "!has(self.evaluation) || has(self.replicaSpecs.evaluator)",
        "this job has no evaluator: add `replicaSpecs.evaluator: {}`, or remove evaluation",
        "evaluation",
    ),
    Rule(
        "spec.checkpoint",
        "!has(self.keepEverySteps) || !has(self.everySteps) || self.keepEverySteps >= self.everySteps",
        "keepEverySteps is below everySteps, so that every checkpoint is kept: raise it, or lower everySteps",
        "keepEverySteps",
    ),
    Rule(
        "spec.strategyOptions.partitioner",
        "!has(self.maxShards) || !has(self.fixedShards)",
        "fixedShards is already the number of shards: remove maxShards",
        "maxShards",
    ),
    *(
        Rule(
            _STORAGE,
            f"!has(self.{field}) || !has(self.uri)",
            f"{field} belongs to a volume, and uri needs none: remove {field}",
            field,
        )
        for field in ("mountPath", "mountOn", "subPath")
    ),
    Rule(
        _STORAGE,
        "!has(self.retention) || has(self.volumeClaimTemplate)",
        "retention is for a claim that the operator creates: set volumeClaimTemplate, or remove retention",
        "retention",
    ),
    Rule(
        "spec.program.source",
        "!has(self.path) || has(self.volume)",
        "path is a folder of a volume: set volume, or remove path",
        "path",
    ),
    *_scheduling(),
    *(
        Rule("spec.replicaSpecs.*.template.spec", f"!has(self.{field})", f"{field} belongs to dtjob: {advice}", field)
        for field, advice in _OURS.items()
    ),
    *(_before_the_deadline(path) for path in ("startDeadlineSeconds", _STALL)),
    Rule(
        f"spec.{_POLICY}.backoff",
        "self.maxSeconds >= self.initialSeconds",
        f"maxSeconds (by default {default_of(Backoff, 'maxSeconds')}) is below initialSeconds (by default "
        f"{default_of(Backoff, 'initialSeconds')}): raise it, or lower initialSeconds",
        "maxSeconds",
    ),
    Rule(
        "spec",
        f"has(self.program) || !has(self.{_STALL})",
        "only dtjob's trainer reports steps, and it runs only if program is set: set program, or remove "
        "stallTimeoutSeconds",
        _STALL,
    ),
    _of_rules(
        f"has(self.{_STALL}) || rules.all(r, !has(r.onReasons) || !('{STALLED}' in r.onReasons))",
        f"no task ends with reason {STALLED} if stallTimeoutSeconds is not set: set it, such as 600, or remove "
        f"{STALLED} from onReasons",
    ),
    *(
        _of_rules(
            f"has(self.replicaSpecs.{role}) || rules.all(r, !has(r.roles) || !('{role}' in r.roles))",
            f"a rule names the role {role}, which the job does not have: remove {role} from its roles",
        )
        for role in Role
        if role is not Role.DATA  # a rule cannot name it
    ),
    _of_rules(
        "!has(self.program) || rules.all(r, "
        f"!has(r.onExitCodes) || r.onExitCodes.operator != 'In' || !({PEER_LOST} in r.onExitCodes.values))",
        f"exit code {PEER_LOST} never matches: a program that ends with it has lost a peer and restarts in its "
        f"container, which ends with 76 if that does not help: write 76, or remove {PEER_LOST}",
    ),
    Rule(
        _RULES,
        "self.all(r, self.exists_one(o, o == r))",
        "a rule occurs twice, and the second one never matches: remove it",
    ),
    Rule(
        f"{_RULES}[]",
        f"self.action != '{RuleAction.RESTART_AND_IGNORE_MAX_RESTARTS}' || !has(self.roles) || "
        f"!('{Role.EVALUATOR}' in self.roles)",
        "restarts of the evaluator never count: write Restart, or remove evaluator from roles",
        "action",
    ),
    Rule(
        f"{_RULES}[].onExitCodes",
        "!(0 in self.values)",
        "exit code 0 is success and never matches: remove it (a rule with roles alone matches all their failures)",
        "values",
    ),
    Rule(
        f"{_RULES}[].onReasons",
        "self.all(r, r.matches('^[A-Z][^ ]*$'))",
        "a reason is one word with a capital first letter, such as OOMKilled or ImagePullBackOff",
    ),
    Rule(
        f"{_RULES}[].onReasons",
        f"!self.exists(r, r in {list(_NO_FAILURE)})",
        f"{', '.join(_NO_FAILURE[:-1])} and {_NO_FAILURE[-1]} are not reasons of failures: remove them",
    ),
    Rule(
        f"{_RULES}[].onPodConditions",
        f"self.all(c, c.type != 'PodScheduled' || c.status != '{ConditionStatus.FALSE}')",
        "an unschedulable pod has not failed, so PodScheduled False never matches: remove it",
    ),
)
