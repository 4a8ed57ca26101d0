# SPDX-License-Identifier: Apache-2.0
"""What the command line says of a Python script, in place of a manifest. Imports nothing that takes time."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Script:
    """A script, and what the command line says of its job."""

    file: Path
    arguments: tuple[str, ...] = ()
    strategy: str | None = None
    workers: int | None = None
    ps: int | None = None
    evaluator: bool = False
    checkpoint: str | None = None
    """gs://BUCKET/PATH, or a directory of this machine. None: one that ends with the run or the pod."""
    gpus: int | None = None
    """Of each task that computes. None: the job asks for none."""
    name: str | None = None
    """Of the job. None: it is made of the file's."""
    cpu: str | None = None
    memory: str | None = None
    """Of each task, as quantities of Kubernetes. None: as much as there is."""
    env: tuple[str, ...] = ()
    """Variables as NAME=VALUE."""
    secrets: tuple[str, ...] = ()
    """Secrets whose keys are variables."""
    mounts: tuple[str, ...] = ()
    """Claims as CLAIM:/PATH."""
    settings: tuple[str, ...] = ()
    """Fields of the manifest as PATH=VALUE."""

    @property
    def kept_at(self) -> Path | None:
        """The directory of this machine that keeps the checkpoints. None: the run's."""
        return None if self.checkpoint is None or "://" in self.checkpoint else Path(self.checkpoint).absolute()


@dataclass(frozen=True)
class Submission:
    """What the command line says of a script for a cluster."""

    script: Script
    source: Path | None = None
    requirements: Path | None = None
    image: str | None = None
    claim: str | None = None
    queue: str | None = None
    namespace: str | None = None
    claim_size: str | None = None


def is_script(file: Path) -> bool:
    """Whether `file` is a script, and no manifest."""
    return file.suffix == ".py"
