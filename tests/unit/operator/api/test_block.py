# SPDX-License-Identifier: Apache-2.0
"""What holds for every block of the manifest."""

import inspect
import subprocess
import sys

import pytest
from pydantic import Field, ValidationError

from dtjob.api.block import Block, OpenBlock


class Inner(OpenBlock):
    max_size: int = 3
    """The most."""


class Outer(Block):
    inner_block: Inner = Inner()


def test_names_are_those_of_the_manifest() -> None:
    assert Outer.model_validate({"innerBlock": {"maxSize": 4}}).inner_block.max_size == 4
    assert Outer().model_dump(by_alias=True) == {"innerBlock": {"maxSize": 3}}


def test_a_dtjob_block_refuses_unknown_fields_and_a_kubernetes_block_keeps_them() -> None:
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Outer.model_validate({"innerBlock": {}, "other": 1})
    kept = Outer.model_validate({"innerBlock": {"hostNetwork": True}})
    assert kept.model_dump(by_alias=True) == {"innerBlock": {"maxSize": 3, "hostNetwork": True}}


class Described(Block):
    """A block."""

    max_size: int = 3
    """The most
    of all."""
    other: int = Field(1, description="Said here.")
    """Not said here."""
    plain: int = 2


class Wider(Described):
    inner_block: Described | None = None
    """The one inside."""


def test_the_text_below_a_field_is_its_description() -> None:
    schema = Wider.model_json_schema()
    inner = schema["$defs"]["Described"]["properties"]
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
