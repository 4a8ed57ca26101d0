"""Which change of a status may wait a little: one that only counts, and that nothing is done about.

Pods of a job start one after another, and end so. Were each of them written, a job of four pods would be written twice
as often as anything happens to it; a count that is a second old misleads nobody.
"""

from __future__ import annotations

from dataclasses import replace

from dtjob.api.replicas import Role
from dtjob.plan.status import Status


def only_counts(status: Status, written: Status) -> bool:
    """Whether the two differ only in how many tasks are made, up or done. All of that can be read from the pods again:
    an operator that begins anew before it is written finds the same. Not so who has done its part: a pod that has ended
    may go at any moment, and without a word about it would be made again, training with it."""
    if written.phase is None or _is_needed(status, written):
        return False
    counts = {name: getattr(written, name) for name in ("ready", "replica_statuses", "finished", "all_created")}
    return status != written and replace(status, **counts) == written


def _is_needed(status: Status, written: Status) -> bool:
    """Whether somebody has done its part, of whom the job would need another pod."""
    done = (id_ for id_, attempt in status.finished.items() if written.finished.get(id_) != attempt)
    return any(not status.ended or id_.startswith(Role.EVALUATOR.value) for id_ in done)
