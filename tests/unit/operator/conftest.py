"""What all tests of the operator share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dtjob.controller import store
from tests.unit.operator.simulation.guarded import guarded


@pytest.fixture(autouse=True, scope="session")
def _stores_that_refuse_to_be_read_where_nothing_is_kept() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "kept", guarded)
        yield
