"""Which change of a status may wait a little: one that only counts, and that nothing is done about.

Pods of a job start one after another, and end so. Were each of them written, a job of four pods would be written twice
as often as anything happens to it; a count that is a second old misleads nobody.
"""

from __future__ import annotations

from dataclasses import replace

from dtjob.plan.status import Status


def only_counts(status: Status, written: Status) -> bool:
    """Whether the two differ only in how many tasks are made, up or done. All of that can be read from the pods again:
    an operator that begins anew before it is written finds the same. Not so which tasks have finished: their pods may
    go at any moment, and one that is not remembered would be started anew."""
    if written.phase is None:
        return False
    counts = {name: getattr(written, name) for name in ("ready", "replica_statuses", "all_created")}
    return status != written and replace(status, **counts) == written
