# SPDX-License-Identifier: Apache-2.0
"""What training leaves behind: the manifest's `checkpoint`, `evaluation` and `tensorBoard`."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import LONGEST_SECONDS, UNSET_IN_CLUSTER, Block, Text
from dtjob.api.spec.volume_claim import Retention, VolumeClaimTemplate
from dtjob.api.spec.volume_sources import VolumeSource


class MountOn(StrEnum):
    """Which pods mount the checkpoint volume."""

    CHIEF = "Chief"
    ALL = "All"


class WriteMode(StrEnum):
    """Whether training waits for a checkpoint to be written."""

    ASYNC = "Async"
    SYNC = "Sync"


class CheckpointStorage(Block):
    """Where checkpoints are kept: set exactly one of volumeClaimTemplate, volume and uri."""

    volume_claim_template: VolumeClaimTemplate | None = None
    """PersistentVolumeClaim that the operator creates for the job. Its name is that of the job with -checkpoints. A
    later job of the same name uses a claim that was retained."""
    retention: Annotated[Retention, Field(json_schema_extra=UNSET_IN_CLUSTER)] = Retention.RETAIN
    """What happens to the claim of volumeClaimTemplate when the job is deleted. Retain (the default): it stays. Delete:
    Kubernetes deletes it, if this job created it."""
    volume: VolumeSource | None = None
    """Volume that holds the checkpoints: exactly one Kubernetes volume source that can be written to. Example:
    {persistentVolumeClaim: {claimName: digits}}. Kubernetes deletes an emptyDir or ephemeral volume with the chief's
    pod."""
    sub_path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Directory within the volume, relative to its root, so that several jobs can share one claim. The volume's root if
    left out."""
    mount_path: Annotated[str, Field(min_length=1, max_length=4096, json_schema_extra=UNSET_IN_CLUSTER)] = (
        "/checkpoints"
    )
    """Absolute path at which the volume is mounted. Defaults to /checkpoints."""
    mount_on: Annotated[MountOn, Field(json_schema_extra=UNSET_IN_CLUSTER)] = MountOn.CHIEF
    """Pods that mount the volume. Chief (the default) suits every volume, and the evaluator then runs on the chief's
    node. All needs a shared file system (ReadWriteMany); each ps then writes its own part of a checkpoint."""
    uri: Text | None = None
    """Bucket and path that hold the checkpoints. Example: gs://my-bucket/digits. For s3:// the program has to import a
    package that gives TensorFlow this file system, such as tensorflow_io."""


class BestMode(StrEnum):
    """Which value of a metric is the best."""

    MAX = "Max"
    MIN = "Min"


class Checkpoint(Block):
    """Where and how often training is saved."""

    storage: CheckpointStorage
    """Where checkpoints are kept. Use storage that outlives the chief's pod, or a restart begins again at step 0."""
    every_epochs: Annotated[int, Field(ge=0)] | None = None
    """Epochs between two saves. 0: never by epochs. If left out, the end of each epoch saves unless the last save is
    less than 30 seconds old. Custom loops have no epochs."""
    every_steps: Annotated[int, Field(ge=1)] | None = None
    """Number of steps between two saves. Default: no saves by steps. Saves by everyEpochs and everySeconds remain."""
    every_seconds: Annotated[int, Field(ge=0, le=LONGEST_SECONDS)] = 300
    """Seconds from any save to one by time, within an epoch too. 0: never by time. Defaults to 300."""
    max_to_keep: Annotated[int, Field(ge=1, le=1000)] = 3
    """Number of newest checkpoints that are kept. Older ones are deleted, except those of keepEverySteps and keepBest.
    Defaults to 3."""
    keep_every_steps: Annotated[int, Field(ge=1)] | None = None
    """Also keeps one checkpoint for each multiple of this many steps: the first one at or after it. None is kept for
    its step if left out. Example: 10000."""
    keep_best: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Also keeps this many checkpoints: the best by the metric of evaluation.best. None is kept for its metric if left
    out."""
    write_mode: WriteMode = WriteMode.ASYNC
    """Async (the default): training continues while a checkpoint is written. Sync: training waits for it."""
    save_timeout_seconds: Annotated[int, Field(ge=1, le=3600)] = 60
    """Seconds that a pod gets to save before it is killed. It is the pod's terminationGracePeriodSeconds unless its
    template sets that. Defaults to 60."""

    @property
    def directory(self) -> str:
        """Where the trainer finds the checkpoints: the URI, or the path of the mounted volume."""
        return self.storage.uri or self.storage.mount_path


class EvaluatedCheckpoints(StrEnum):
    """Which checkpoints the evaluator evaluates."""

    LATEST = "Latest"
    EVERY = "Every"


class Best(Block):
    """Which evaluated checkpoints are the best. The status shows the best one."""

    metric: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of the metric that decides, as the evaluator reports it. Example: accuracy."""
    mode: BestMode
    """Max: the highest value is the best. Example: accuracy. Min: the lowest value is the best. Example: loss."""
    keep_model: bool = True
    """Whether the model of the best checkpoint is kept as best.keras in the checkpoint directory. Defaults to true."""


class Evaluation(Block):
    """What the evaluator does."""

    checkpoints: EvaluatedCheckpoints = EvaluatedCheckpoints.LATEST
    """Checkpoints that are evaluated. Latest (the default): the newest one whenever the evaluator is idle. Every: each
    one in order, unless checkpoint.maxToKeep deletes it first."""
    best: Best | None = None
    """Which checkpoints are the best: for status.evaluation.best, best.keras and checkpoint.keepBest. No checkpoint is
    compared if left out."""


class Profile(Block):
    """A profile of a few steps for TensorBoard's profile plugin."""

    first_step: Annotated[int, Field(ge=1)]
    """First step to profile, counted from 1. The first steps after a start are slower than later ones."""
    steps: Annotated[int, Field(ge=1, le=1000)] = 5
    """Number of steps to profile. Defaults to 5."""


class TensorBoard(Block):
    """What the chief writes for TensorBoard, to events/train in the checkpoint directory."""

    every_steps: Annotated[int, Field(ge=1)] = 100
    """Steps between two points of loss, metrics, learning rate and speed. The end of each epoch adds one. Defaults to
    100."""
    profile: Profile | None = None
    """Profiles the chief for a few steps. No profile is taken if left out."""
