# SPDX-License-Identifier: Apache-2.0
"""The status as a whole."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, WithJsonSchema

from dtjob.api.block import list_map, without
from dtjob.api.phase import ENDED, Phase
from dtjob.api.status.activity import Activity
from dtjob.api.status.block import LONGEST_WORD, Int64, Message, StatusBlock, Time, Word
from dtjob.api.status.condition import Condition
from dtjob.api.status.goodput import GoodputStatus
from dtjob.api.status.internal import Internal
from dtjob.api.status.placement import Gang, QueueEntry
from dtjob.api.status.progress import EvaluationResult, Progress, Restored, SavedCheckpoint
from dtjob.api.status.restarts import MOST_INCIDENTS, LastFailure, PastIncident, Restarts
from dtjob.api.status.workers import ReplicaStatus, Workers

MOST_CONDITIONS = 64
"""Conditions of one job: ours, and those of whoever else writes some."""
_IN_PARTS = (("internal",), ("conditions",))
"""Fields of which only the part goes that cannot be read."""


class Status(StatusBlock):
    """The observed state of the job. The operator writes it."""

    observed_generation: Annotated[Int64, Field(ge=0)] | None = None
    """The metadata.generation of the job that this status is about."""
    phase: Annotated[Phase | None, WithJsonSchema({"type": "string", "maxLength": LONGEST_WORD})] = None
    """The state of the job in one word: Pending, Running, Restarting, Suspended, Succeeded or Failed. It follows from
    the conditions."""
    reason: Word | None = None
    """Why the job is in this phase, in one word. It follows from the conditions."""
    message: Message | None = None
    """Why the job is in this phase, in words. It follows from the conditions."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=MOST_CONDITIONS, json_schema_extra=list_map("type"))
    ] = ()
    """The conditions of the job. Running, Suspended, Complete and Failed are always present. Suspended becomes True
    when the pods are told to end. They have ended when replicaStatuses counts no active and no pending task."""
    image: Annotated[str, Field(max_length=1024)] | None = None
    """The operator's default image when the job started. All pods use it. The field is absent if spec.image is set."""
    ready: Annotated[str, Field(max_length=32)] | None = None
    """The number of tasks that run or have finished, and the number of all tasks, such as 3/4."""
    start_time: Time | None = None
    """When the job started. The field is absent while a job that was created suspended has not been resumed."""
    first_step_time: Time | None = None
    """When the operator first saw that the job had done a training step. The field is absent before that."""
    completion_time: Time | None = None
    """When the job succeeded or failed. The field is absent before that."""
    active: Activity | None = None
    """How long the job has been active, by the operator's clock. Suspensions do not count; waiting for pods does."""
    replica_statuses: Annotated[dict[str, ReplicaStatus], Field(max_length=8)] = {}
    """The tasks of each role by state."""
    workers: Workers | None = None
    """How many workers the job is to have, and how many train together. The field is absent if the job has no
    workers."""
    progress: Progress | None = None
    """How far training is, as the chief reports it. The field is absent before the first report."""
    checkpoint: SavedCheckpoint | None = None
    """The newest complete checkpoint. A restart resumes from it. The field is absent if there is none."""
    evaluation: EvaluationResult | None = None
    """The latest result of the evaluator. The field is absent before the first evaluation."""
    goodput: GoodputStatus | None = None
    """How the job spent its time since all its tasks first ran, without suspensions. The values are as of the last
    write of the status. The field is absent if spec.program is not set."""
    restarts: Restarts = Restarts()
    """How often training was restarted."""
    incidents: Annotated[
        tuple[PastIncident, ...], Field(max_length=MOST_INCIDENTS, json_schema_extra=list_map("number"))
    ] = ()
    """The latest interruptions of training, the newest last, at most 10. Restarts of the evaluator are not part of
    them."""
    restored: Restored | None = None
    """What training resumed from at its last start. The field is absent if it has only started from the beginning."""
    gang: Gang | None = None
    """The gang that the job started with. The field is absent if spec.scheduling.gang is not set."""
    last_failure: LastFailure | None = None
    """The failure that caused the last restart, or the end of the job. The field is absent if nothing has failed."""
    queue: QueueEntry | None = None
    """The job's place in a queue of Kueue. The field is absent if the job is in no queue."""
    internal: Internal = Internal()
    """What the operator remembers for itself. The content is unstable: it may change with any version, so do not read
    it. If it is lost, the job continues, and only its counts for restart limits begin again."""

    @classmethod
    def read(cls, stored: Mapping[str, Any]) -> Self:
        """The status that a job has. What cannot be read of it is left out; whatever is stored, nothing is raised."""
        try:
            return cls.model_validate(stored)
        except ValidationError as error:
            wrong = {one["loc"][: 2 if one["loc"][:1] in _IN_PARTS else 1] for one in error.errors()}
            return cls() if () in wrong else cls.model_validate(without(stored, wrong))

    def to_json(self) -> dict[str, Any]:
        """The status as it is written. What is empty is left out, but for the number of restarts."""
        written = super().to_json()
        if written:
            written.setdefault("restarts", {}).setdefault("total", 0)
        return written

    def remembering(self, **changes: Any) -> Self:
        """A copy with these fields of `internal` changed."""
        return self.but(internal=self.internal.but(**changes))

    def expecting_no_pods(self) -> Self:
        """A copy in which no attempt has had its pod: one that is missing was not deleted."""
        return self.remembering(all_created=False, made_before=None)

    @property
    def ended(self) -> bool:
        """Whether the job has ended, well or not."""
        return self.phase in ENDED

    @property
    def step(self) -> int:
        """The training steps that are done, as far as is known."""
        return self.progress.step if self.progress else 0

    @property
    def checkpoint_step(self) -> int:
        """The step of the newest checkpoint known, -1 where there is none."""
        return self.checkpoint.step if self.checkpoint else -1

    def went_on_after(self, moment: datetime) -> bool:
        """Whether the job was suspended after this moment, and is active again."""
        return self.active is not None and self.active.went_on_after(moment)
