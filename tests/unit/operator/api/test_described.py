# SPDX-License-Identifier: Apache-2.0
"""The text below a field is its description in the schema, and costs nothing before."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
from pydantic import Field

from dtjob.api.block import Block


class Inner(Block):
    """A block."""

    max_size: int = 3
    """The most
    of all."""
    other: int = Field(1, description="Said here.")
    """Not said here."""
    plain: int = 2


class Outer(Inner):
    inner_block: Inner | None = None
    """The one inside."""


def test_the_text_below_a_field_is_its_description() -> None:
    schema = Outer.model_json_schema()
    inner = schema["$defs"]["Inner"]["properties"]
    assert (inner["maxSize"]["description"], inner["other"]["description"]) == ("The most\nof all.", "Said here.")
    assert "description" not in inner["plain"]
    assert schema["properties"]["innerBlock"]["description"] == "The one inside."
    assert schema["properties"]["maxSize"]["description"] == "The most\nof all."


def test_a_block_is_used_without_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(inspect, "getsource", refuse)
    monkeypatch.setattr(inspect, "getsourcelines", refuse)

    class Late(Block):
        size: int = 1
        """A size."""

    assert Late.model_validate({"size": 2}).size == 2


def test_models_have_no_validator_after_their_import() -> None:
    code = "import dtjob.api.job as job; print(job.Spec.__pydantic_complete__, job.FailurePolicy.__pydantic_complete__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
