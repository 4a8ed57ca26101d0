# SPDX-License-Identifier: Apache-2.0
"""The manifest's `program`: what the trainer image's supervisor runs."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block, Text
from dtjob.api.spec.pod_template import EnvFromSource, Environment
from dtjob.api.spec.volume_sources import AnyVolumeSource


class Integration(StrEnum):
    """What dtjob changes in the process of the program."""

    FULL = "Full"
    NONE = "None"


class ConfigMapSource(Block):
    """ConfigMap with the files of the program."""

    name: Annotated[str, Field(min_length=1, max_length=253)]
    """Name of a ConfigMap in the namespace of the job. Each key is a file. The key source.tar.gz is an archive of files
    and folders."""


class Source(Block):
    """Files of the program, which every pod copies into its working directory: set exactly one of configMap and
    volume."""

    config_map: ConfigMapSource | None = None
    """ConfigMap with the files. Example: {name: train-source}, made by kubectl create configmap train-source
    --from-file=train.py."""
    volume: AnyVolumeSource | None = None
    """Volume with the files: any Kubernetes volume source. It is mounted read-only in every pod. Example:
    {persistentVolumeClaim: {claimName: code}} or {image: {reference: REGISTRY/CODE:1}}."""
    path: Annotated[str, Field(min_length=1, max_length=4096)] | None = None
    """Folder within the volume, relative to its root. The volume's root if left out."""


class Program(Block):
    """The training program, run by the trainer image's supervisor."""

    source: Source | None = None
    """Files of the program. Each container copies them into a directory of its own, which is its working directory. If
    left out, the program is in the image."""
    entrypoint: Text
    """Python file, relative to the working directory, or the name of a module. Example: train.py."""
    requirements: Text | None = None
    """Requirements file of pip, relative to the working directory. Each container installs what its image lacks, before
    the program starts. Example: requirements.txt. Nothing is installed if left out."""
    args: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=256)] = Field(default_factory=list)
    """Arguments of the program. $(NAME) becomes the value of that environment variable, as in a container's args. It
    stays as it is if there is no such variable; $$ is one $. Example: [--epochs=20, --rate=$(RATE)]."""
    env: Environment = Field(default_factory=list)
    """Environment variables for every task."""
    env_from: Annotated[list[EnvFromSource], Field(max_length=64)] = Field(default_factory=list)
    """Secrets and ConfigMaps whose keys become environment variables of every task. A variable of env replaces one of
    the same name. Example: [{secretRef: {name: wandb}}]."""
    integration: Integration = Integration.FULL
    """Full (the default): Model.fit, strategies and saving work under the strategy of the job, with checkpoints and
    resume. None: dtjob changes nothing of TensorFlow, Keras or Python in the program, which reads TF_CONFIG itself."""
