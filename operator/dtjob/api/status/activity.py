# SPDX-License-Identifier: Apache-2.0
"""`status.active`: how long a job has been active, which is the time that deadlines count.

All of it is the operator's own clock: no pod's and no API server's time is compared with it, which may be ahead or
behind.
"""

from datetime import datetime, timedelta

from dtjob.api.status.block import StatusBlock, Sum, Time, whole


class Activity(StatusBlock):
    """How long the job has been active, by the operator's clock. Suspensions do not count; waiting for pods does."""

    since: Time | None = None
    """When the current period of activity began. The field is absent while the job is suspended."""
    seconds: Sum = 0
    """The number of seconds that the job was active before the current period."""
    all_ran_time: Time | None = None
    """When all training tasks first ran together in the current period. The field is absent before that."""

    def lasted(self, now: datetime) -> timedelta:
        """How long the job has been active, all in all. A clock that was set back takes nothing away."""
        running = now - self.since if self.since else timedelta(0)
        return timedelta(seconds=self.seconds) + max(running, timedelta(0))

    def went_on_after(self, moment: datetime) -> bool:
        """Whether the job was suspended after this moment, and is active again."""
        return self.since is not None and self.since > moment

    def begun(self, now: datetime) -> "Activity":
        """Active from now on, where it was not."""
        return self if self.since else self.but(since=whole(now), all_ran_time=None)

    def ended(self, now: datetime) -> "Activity":
        """Not active from now on."""
        return self.but(since=None, seconds=int(self.lasted(now).total_seconds()), all_ran_time=None)

    def all_run(self, now: datetime) -> "Activity":
        """All tasks that train run now."""
        return self if self.all_ran_time else self.but(all_ran_time=whole(now))
