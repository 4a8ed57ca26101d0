# SPDX-License-Identifier: Apache-2.0
"""What holds for every block of the manifest."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

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
