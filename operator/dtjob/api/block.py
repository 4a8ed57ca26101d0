# SPDX-License-Identifier: Apache-2.0
"""What every block of the manifest is: a pydantic model with the manifest's names; and what blocks share."""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.alias_generators import to_camel

from dtjob.api.described import Described


class Block(Described):
    """A block of the manifest: camelCase names, no field that is not known."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True)


class OpenBlock(Block):
    """A block of Kubernetes' own, of which only some fields are typed here and the others are kept as they are."""

    model_config = ConfigDict(extra="allow")


Text = Annotated[str, Field(min_length=1, max_length=4096)]

LONGEST_SECONDS = 2**31 - 1
"""The most seconds of a deadline: 68 years, as batch/v1 has it for ttlSecondsAfterFinished."""
Seconds = Annotated[int, Field(ge=1, le=LONGEST_SECONDS)]

UNSET_IN_CLUSTER = {"x-dtjob-default": "in Python only"}
"""Marks a default that the API server does not fill in, because it depends on another field."""
