# SPDX-License-Identifier: Apache-2.0
"""Rules about a job's life: manager, deadlines, whose end ends it, and the time in which a pod may save."""

from dtjob.api.job import CONTROLLER, SuccessPolicy
from dtjob.api.label_forms import DOMAIN
from dtjob.api.spec.checkpoint import Checkpoint, MountOn
from dtjob.api.spec.pod_template import TRAINING_CONTAINER
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.crd.rule import Reason, Rule, quoted
from dtjob.crd.rules.templates import each_training, pod, pod_frame

_PREFIXED_PATH = rf"^{DOMAIN}/[A-Za-z0-9/._~%!$&'()*+,;=:-]+$"
"""A DNS subdomain, a slash and characters of a path (RFC 3986), as batch/v1 has it for a Job's managedBy."""


LIFE_RULES = (
    Rule(
        "spec",
        f"!has(self.managedBy) || self.managedBy.matches({quoted(_PREFIXED_PATH)})",
        f"must be a domain-prefixed path, such as kueue.x-k8s.io/multikueue: remove it, or write {CONTROLLER} if dtjob "
        "runs the job",
        "managedBy",
    ),
)


SAVING_ROLES = (Role.CHIEF, Role.WORKER, Role.PS)
"""Tasks that all have a part in a save: those that train save together, and a ps serves its variables meanwhile."""
_SAVE_SECONDS: int = Checkpoint.model_fields["save_timeout_seconds"].default
_HAS_HOOK = "has(c.lifecycle) && has(c.lifecycle.preStop)"
"""CEL: the container `c` has a preStop hook."""


def _long_enough(role: str) -> Rule:
    """The template's grace period is not shorter than a save, and the sleep before it."""
    given, save = "terminationGracePeriodSeconds", "self.checkpoint.saveTimeoutSeconds"
    sleep = "c.lifecycle.preStop.sleep"
    sleeps = f"c.name == '{TRAINING_CONTAINER}' && {_HAS_HOOK} && has({sleep})"
    slept = f"{pod(role)}.containers.exists(c, {sleeps} && {pod(role)}.{given} < {save} + {sleep}.seconds)"

    return Rule(
        "spec",
        f"!has({pod(role)}.{given}) || !has(self.program) || !has(self.checkpoint) || "
        f"({pod(role)}.{given} >= {save} && !(has({pod(role)}.containers) && {slept}))",
        f"is shorter than a save (checkpoint.saveTimeoutSeconds, by default {_SAVE_SECONDS}) and preStop.sleep: remove "
        "it, increase it, or reduce checkpoint.saveTimeoutSeconds",
        f"replicaSpecs.{role}.template.spec.{given}",
        frame=pod_frame(role),
    )


def _no_hook_of_unknown_length(role: str) -> Rule:
    known = f"(!({_HAS_HOOK}) || has(c.lifecycle.preStop.sleep) || !has(self.program) || !has(self.checkpoint))"
    return Rule(
        "spec",
        each_training(role).replace("{}", known),
        f"a preStop hook of the container {TRAINING_CONTAINER} uses up the time for the save: use preStop.sleep, which "
        "dtjob adds to that time, or remove the hook",
        f"replicaSpecs.{role}.template.spec.containers",
        frame=pod_frame(role),
    )


GRACE_RULES = (
    *(_long_enough(role.value) for role in SAVING_ROLES),
    *(_no_hook_of_unknown_length(role.value) for role in SAVING_ROLES),
)


_SUCCESS = "successPolicy"
_FRAME = f"!has(self.{_SUCCESS}) || self.{_SUCCESS} != '{SuccessPolicy.ALL_WORKERS.value}' || {{}}"
_PS = Strategy.PARAMETER_SERVER.value

SUCCESS_RULES = (
    Rule(
        "spec",
        "has(self.replicaSpecs.worker)",
        "this job has no workers: remove successPolicy, and the chief decides",
        _SUCCESS,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
    Rule(
        "spec",
        f"!has(self.program) || self.strategy != '{_PS}'",
        "workers of ParameterServer do not end by themselves: remove successPolicy, and the chief decides",
        _SUCCESS,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
    Rule(
        "spec",
        "!has(self.replicaSpecs.evaluator) || !has(self.checkpoint) || "
        "has(self.checkpoint.storage.uri) || "
        f"(has(self.checkpoint.storage.mountOn) && self.checkpoint.storage.mountOn != '{MountOn.CHIEF.value}')",
        "the evaluator needs the chief's node, and the chief may end before the workers: set "
        "checkpoint.storage.mountOn to All, or remove successPolicy",
        _SUCCESS,
        Reason.FORBIDDEN,
        frame=_FRAME,
    ),
)
