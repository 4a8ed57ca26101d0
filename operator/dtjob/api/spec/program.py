"""The manifest's `program`: what the trainer image's supervisor runs."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block, Text
from dtjob.api.spec.pod_template import Environment


class ModelFit(StrEnum):
    """Whose loop Model.fit is."""

    DISTRIBUTED = "Distributed"
    KERAS = "Keras"


class Program(Block):
    """The training program, run by the trainer image's supervisor."""

    entrypoint: Text
    """Python file in the image, relative to its working directory, or the name of a module. Example: train.py."""
    args: Annotated[list[Annotated[str, Field(max_length=4096)]], Field(max_length=256)] = Field(default_factory=list)
    """Arguments of the program. $(NAME) becomes the value of that environment variable, as in a container's args. It
    stays as it is if there is no such variable; $$ is one $. Example: [--epochs=20, --rate=$(RATE)]."""
    env: Environment = Field(default_factory=list)
    """Environment variables for every task."""
    model_fit: ModelFit = ModelFit.DISTRIBUTED
    """What Model.fit and Model.evaluate of Keras do. Distributed (the default): they train and evaluate under the job's
    strategy, with checkpoints and resume. Keras: they are Keras's own, which fail under some strategies."""
