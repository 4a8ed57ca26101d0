# SPDX-License-Identifier: Apache-2.0
"""`status.replicaStatuses`: the tasks of each role by state."""

from __future__ import annotations

from dtjob.api.status.block import Int32, StatusBlock


class ReplicaStatus(StatusBlock):
    """The tasks of one role. A count that is 0 is absent."""

    replicas: Int32 = 0
    """The number of tasks of this role."""
    active: Int32 = 0
    """The number of tasks that run."""
    pending: Int32 = 0
    """The number of tasks whose pod exists but does not run yet."""
    succeeded: Int32 = 0
    """The number of tasks that finished."""
    failed: Int32 = 0
    """The number of tasks that failed or were lost with their node."""
