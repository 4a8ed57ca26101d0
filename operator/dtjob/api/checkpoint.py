"""What training leaves behind: the manifest's `checkpoint`, `evaluation` and `tensorBoard`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import UNSET_IN_CLUSTER, Block, Text
from dtjob.api.volume_sources import VolumeSource

DEFAULT_EVERY_SECONDS = 300
"""How often training is saved where neither everySteps nor everySeconds says it."""


class Mount(StrEnum):
    """Which pods mount the checkpoint volume."""

    CHIEF = "Chief"
    ALL = "All"


class Checkpoint(Block):
    """Where and how often training is saved."""

    directory: Text
    """Absolute path (or gs:// URI) of the checkpoints. It must outlive the chief's pod for a restart to resume."""
    volume: VolumeSource | None = None
    """Any one Kubernetes volume source that can be written to, such as {persistentVolumeClaim: {claimName: digits}};
    mounted at directory. emptyDir and ephemeral end with the chief's pod, and the checkpoints with them."""
    mount: Mount = Mount.CHIEF
    """Which pods mount volume: Chief (any ReadWriteOnce volume will do; the evaluator runs on the chief's node) or All
    (a shared file system)."""
    every_steps: Annotated[int, Field(ge=1)] | None = None
    """Save each time this many steps were trained."""
    every_seconds: Annotated[int, Field(ge=1)] | None = None
    """Save each time this many seconds have passed. 300 where everySteps is not set either."""
    keep: Annotated[int, Field(ge=1, le=1000, json_schema_extra=UNSET_IN_CLUSTER)] = 3
    """How many checkpoints are kept; 3 where left out."""
    asynchronous: Annotated[bool, Field(alias="async", json_schema_extra=UNSET_IN_CLUSTER)] = True
    """Whether training goes on while a checkpoint is written; true where left out."""
    save_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Time that a pod is given to save before it is removed (its terminationGracePeriodSeconds, if its template sets
    none)."""


class EvaluatedCheckpoints(StrEnum):
    """Which checkpoints the evaluator looks at."""

    LATEST = "Latest"
    EVERY = "Every"


class BestMode(StrEnum):
    """Which value of a metric is the best."""

    MAX = "Max"
    MIN = "Min"


class BestModel(Block):
    """The model that was best so far, kept beside the checkpoints as best.keras."""

    metric: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the metric as the evaluator reports it, such as loss or accuracy."""
    mode: BestMode
    """Max: the highest value is the best (accuracy). Min: the lowest is (loss)."""


class Evaluation(Block):
    """What the evaluator does."""

    checkpoints: EvaluatedCheckpoints = EvaluatedCheckpoints.LATEST
    """Latest: whenever it is free, the newest. Every: each in turn, but those that checkpoint.keep removes."""
    best: BestModel | None = None
    """Keeps the best model."""


class Profile(Block):
    """A profile of a few steps, as TensorBoard's profile plugin shows it."""

    first_step: Annotated[int, Field(ge=1)]
    """The first step to profile, counted from 1; those of a start are slower than the others."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 5
    """How many steps to profile."""


class TensorBoard(Block):
    """What the chief writes for TensorBoard while it trains, to events/train below the checkpoint directory."""

    every_steps: Annotated[int, Field(ge=1)] = 100
    """Write loss, metrics, learning rate and speed each time this many steps were trained, and at each epoch's end."""
    profile: Profile | None = None
    """Profiles the chief for a few steps. Left out: no profile."""
