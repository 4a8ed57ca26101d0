"""Defaults that the trainer takes and the API server does not fill in: the descriptions have to name them."""

from __future__ import annotations

import pytest

from dtjob.api.block import UNSET_IN_CLUSTER, Block
from dtjob.api.checkpoint import DEFAULT_EVERY_SECONDS, Checkpoint
from dtjob.api.network import Network


@pytest.mark.parametrize("block", [Checkpoint, Network])
def test_a_default_that_is_not_filled_in_is_named(block: type[Block]) -> None:
    fields = [field for field in block.model_fields.values() if field.json_schema_extra == UNSET_IN_CLUSTER]
    assert fields
    for field in fields:
        assert f"{str(field.default).lower()} where left out" in (field.description or "")


def test_how_often_is_saved_where_nothing_is_said_is_named() -> None:
    described = Checkpoint.model_fields["every_seconds"].description or ""
    assert f"{DEFAULT_EVERY_SECONDS} where everySteps is not set either" in described
