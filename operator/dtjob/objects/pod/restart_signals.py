# SPDX-License-Identifier: Apache-2.0
"""Over which signals a task's supervisor starts its training process again by itself, in the pod that it has.

A new pod takes longer, and gains nothing if the process had trained well. If a user wants a new pod, a failure rule
names the signal: then the container ends, and `plan/failure/rules.py` asks the rule.
"""

import signal

from dtjob.api.job import Job
from dtjob.api.spec.failure_rules import ExitCodeOperator, FailureRule, Signal
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.strategy import Strategy
from dtjob.objects.exit_codes import of_signal
from dtjob.objects.topology import Task

CRASHES = (Signal.SIGABRT, Signal.SIGBUS, Signal.SIGFPE, Signal.SIGILL, Signal.SIGKILL, Signal.SIGSEGV)
"""The signals of a process that broke or was killed from outside; the others are sent to end it."""
REASONS = ("Error", "OOMKilled")
"""The reasons of a container that ends over one of them."""


def restart_signals(job: Job, task: Task) -> tuple[Signal, ...]:
    """The signals over which the training process of `task` is started again in its container, once it has done new
    steps. No rule of the job's is about them. None if maxRestartsWithoutProgress or maxRestarts is 0, and of tasks that
    train no steps."""
    serves = job.spec.strategy is Strategy.PARAMETER_SERVER and task.role is not Role.CHIEF
    if (
        job.spec.program is None
        or 0 in (job.spec.failure_policy.max_restarts_without_progress, job.spec.failure_policy.max_restarts)
        or serves
        or task.role is Role.EVALUATOR
    ):
        return ()
    rules = [rule for rule in job.spec.failure_policy.rules if rule.is_about(task.role)]
    return tuple(one for one in CRASHES if not any(_is_about(rule, one) for rule in rules))


def _is_about(rule: FailureRule, one: Signal) -> bool:
    """Whether the rule may say something of a container that ends over this signal."""
    if rule.on_exit_codes is not None:
        listed = of_signal(signal.Signals[one.value]) in rule.on_exit_codes.values
        return listed == (rule.on_exit_codes.operator is ExitCodeOperator.IN)
    if rule.on_signals is not None:
        return one in rule.on_signals
    if rule.on_reasons is not None:
        return any(reason in REASONS for reason in rule.on_reasons)
    return rule.on_pod_conditions is None  # with roles alone it is about every failure of theirs
