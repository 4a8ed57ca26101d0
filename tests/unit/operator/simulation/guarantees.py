# SPDX-License-Identifier: Apache-2.0
"""What the operator owes its users whatever happens, beyond the rules of every single call (`invariants.py`).

- one-writer-of-two-jobs: A job that is deleted and applied again never writes to a directory beside the pods of its
  predecessor.
- one-writer-without-labels: A chief whose pod loses labels is not gone.
- finished-stays-finished: A task that has done its part is not started anew for its own sake, even if its pod is
  evicted or collected.
- last-checkpoint-is-evaluated: A run that succeeds while its evaluator has no running pod is evaluated afterwards.
- disruptions-are-free: No more is charged than the job itself has done, whatever its peers die of and whenever that
  shows.
- disruptions-fail-no-job: What is not charged uses up no budget. That holds also for a budget that was lowered below
  what is charged already.
- own-limits-are-charged: A pod that is evicted because it exceeds its own limits, start after start, fails its job.
- rules-decide: The operator does what failurePolicy.rules say. FailJob ends the job in the plan that sees the failure.
  Restart charges one restart, and RestartAndIgnoreMaxRestarts charges none.
- waits-grow: Each wait before a restart is twice the last, unless there was a checkpoint or ten good minutes.
- causes-are-true: The first failure has the cause that its pod's status tells.
- plans-anything: `plan` raises over no report and no status, even if another version of the operator wrote it.
- status-is-taken: What supervisors report never makes a status that the API server refuses, or not for long.
- calls-are-bounded: A refused create is not repeated at each watch event.
- promises-are-kept: No event names a checkpoint that went with the pod that wrote it.
- suspension-is-free: A suspended job gets no pod and has none in the end, and nothing is counted for it.
- resizes-are-free: Another number of workers is another group of all new pods, never beside the group before it.
  Nothing is counted for it. If there is room for all, the group gets as many workers as the spec says.
- deadlines-are-kept: A job's deadlines end it when they are over and not before, and it goes when its time has come.
- clocks-may-differ: All guarantees hold though the nodes' clocks differ from the operator's.
- clock-may-be-set-back: A backoff may begin while the operator's clock is wrong. Once the clock is right, it lasts no
  longer than any other backoff.
- refusals-stay-alone: A pod is replaced though Workloads, repairs and deletions are refused.
- survivors-are-free: If survivors of a failure fail too before training has resumed, that is not charged.
- metric-is-status: As many restarts are in the operator's metric as in the statuses.
- quota-is-kept: A job in a queue of Kueue has pods only while it is admitted. It gives its quota back when its last
  pod has ended, and not before. Nothing is counted for it.
- programs-fail-fast: A program that fails twice in the same way ends its job within two attempts. If the job was ever
  seen to step, only an exception counts so. A failure that no restart repairs ends the job at once.
"""
