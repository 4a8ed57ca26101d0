# SPDX-License-Identifier: Apache-2.0
"""What the operator owes its users whatever happens, each by a name of its own.

`life/` plays a hazard only where what it would break is asked for, so that one guarantee that does not hold yet hides
no other.
"""

from enum import StrEnum


class Must(StrEnum):
    """The guarantees beyond the rules that hold at every single call (`invariants.py`)."""

    ONE_WRITER_OF_TWO_JOBS = "one-writer-of-two-jobs"
    """A job that is deleted and applied again never writes to a directory beside the pods of its predecessor."""
    ONE_WRITER_WITHOUT_LABELS = "one-writer-without-labels"
    """A chief whose pod loses labels is not gone."""
    FINISHED_STAYS_FINISHED = "finished-stays-finished"
    """A task that has done its part is not started anew for its own sake, be its pod evicted or collected."""
    LAST_CHECKPOINT_IS_EVALUATED = "last-checkpoint-is-evaluated"
    """A run that succeeds while its evaluator has no running pod is evaluated afterwards."""
    DISRUPTIONS_ARE_FREE = "disruptions-are-free"
    """No more is charged than the job itself has done, whatever its peers die of and whenever that shows."""
    DISRUPTIONS_FAIL_NO_JOB = "disruptions-fail-no-job"
    """What is not charged uses up no budget, not one that was lowered below what is charged already either."""
    OWN_LIMITS_ARE_CHARGED = "own-limits-are-charged"
    """A pod that is evicted since it exceeds its own limits, start after start, fails its job."""
    RULES_DECIDE = "rules-decide"
    """What failurePolicy.rules say is done: FailJob ends the job in the plan that sees the failure, Restart charges one
    and RestartAndIgnoreMaxRestarts none."""
    WAITS_GROW = "waits-grow"
    """Each wait before a restart is twice the last, unless there was a checkpoint or ten good minutes."""
    CAUSES_ARE_TRUE = "causes-are-true"
    """The first failure has the cause that its pod's status tells."""
    PLANS_ANYTHING = "plans-anything"
    """No status, of another version of the operator either, and no report makes plan raise."""
    STATUS_IS_TAKEN = "status-is-taken"
    """What supervisors report never makes a status that the API server refuses, or not for long."""
    CALLS_ARE_BOUNDED = "calls-are-bounded"
    """A refused create is not repeated at each watch event."""
    PROMISES_ARE_KEPT = "promises-are-kept"
    """No event names a checkpoint that went with the pod that wrote it."""

    SUSPENSION_IS_FREE = "suspension-is-free"
    """A suspended job gets no pod and has none in the end, and nothing is counted for it."""

    RESIZES_ARE_FREE = "resizes-are-free"
    """Another number of workers is another group, never beside the one before it, of all new pods; nothing is counted
    for it, and with room for all it comes to what the spec says."""

    DEADLINES_ARE_KEPT = "deadlines-are-kept"
    """A job's deadlines end it when they are over and not before, and it goes when its time has come."""
    CLOCKS_MAY_DIFFER = "clocks-may-differ"
    """All of it holds though the nodes' clocks are not the operator's."""
    CLOCK_MAY_BE_SET_BACK = "clock-may-be-set-back"
    """A backoff that began by a wrong clock of the operator lasts no longer than another one after it is right."""

    REFUSALS_STAY_ALONE = "refusals-stay-alone"
    """A pod is replaced though Workloads, repairs and deletions are refused."""
    SURVIVORS_ARE_FREE = "survivors-are-free"
    """What survivors of a failure fail of before training has resumed is not charged."""
    METRIC_IS_STATUS = "metric-is-status"
    """As many restarts are in the operator's metric as in the statuses."""

    QUOTA_IS_KEPT = "quota-is-kept"
    """A job in a queue of Kueue has pods only while it is admitted, and gives its quota back when the last has ended,
    and not before; nothing is counted for it."""

    PROGRAMS_FAIL_FAST = "programs-fail-fast"
    """A program that fails alike ends within two attempts. One of a job that was ever seen to step does so only over an
    exception. One that no restart repairs ends at once."""


EVERYTHING = frozenset(Must)
