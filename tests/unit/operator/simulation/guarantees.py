# SPDX-License-Identifier: Apache-2.0
"""What the operator owes its users whatever happens, beyond the rules of every single call (`invariants.py`).

- one-writer-of-two-jobs: A job that is deleted and applied again never writes to a directory beside the pods of its
  predecessor.
- one-writer-without-labels: A chief whose pod loses labels is not gone.
- finished-stays-finished: A task that has done its part is not started anew for its own sake, be its pod evicted or
  collected.
- last-checkpoint-is-evaluated: A run that succeeds while its evaluator has no running pod is evaluated afterwards.
- disruptions-are-free: No more is charged than the job itself has done, whatever its peers die of and whenever that
  shows.
- disruptions-fail-no-job: What is not charged uses up no budget, not one that was lowered below what is charged
  already either.
- own-limits-are-charged: A pod that is evicted since it exceeds its own limits, start after start, fails its job.
- rules-decide: What failurePolicy.rules say is done: FailJob ends the job in the plan that sees the failure, Restart
  charges one and RestartAndIgnoreMaxRestarts none.
- waits-grow: Each wait before a restart is twice the last, unless there was a checkpoint or ten good minutes.
- causes-are-true: The first failure has the cause that its pod's status tells.
- plans-anything: No status, of another version of the operator either, and no report makes plan raise.
- status-is-taken: What supervisors report never makes a status that the API server refuses, or not for long.
- calls-are-bounded: A refused create is not repeated at each watch event.
- promises-are-kept: No event names a checkpoint that went with the pod that wrote it.
- suspension-is-free: A suspended job gets no pod and has none in the end, and nothing is counted for it.
- resizes-are-free: Another number of workers is another group, never beside the one before it, of all new pods;
  nothing is counted for it, and with room for all it comes to what the spec says.
- deadlines-are-kept: A job's deadlines end it when they are over and not before, and it goes when its time has come.
- clocks-may-differ: All of it holds though the nodes' clocks are not the operator's.
- clock-may-be-set-back: A backoff that began by a wrong clock of the operator lasts no longer than another one after
  it is right.
- refusals-stay-alone: A pod is replaced though Workloads, repairs and deletions are refused.
- survivors-are-free: What survivors of a failure fail of before training has resumed is not charged.
- metric-is-status: As many restarts are in the operator's metric as in the statuses.
- quota-is-kept: A job in a queue of Kueue has pods only while it is admitted, and gives its quota back when the last
  has ended, and not before; nothing is counted for it.
- programs-fail-fast: A program that fails alike ends within two attempts. One of a job that was ever seen to step
  does so only over an exception. One that no restart repairs ends at once.
"""
