# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.data.batches: the parts of an example."""

import pytest

pytest.importorskip("numpy")
batches = pytest.importorskip("dtjob_trainer.data.batches")


def test_missing_parts_of_an_example_are_none() -> None:
    assert batches.triple(("x",)) == ("x", None, None)
    assert batches.triple(("x", "y")) == ("x", "y", None)
    assert batches.triple(("x", "y", "w")) == ("x", "y", "w")
