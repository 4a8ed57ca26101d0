# SPDX-License-Identifier: Apache-2.0
"""A run that ends with weights that are no numbers says so in its last report."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster


@pytest.mark.parametrize(
    "what", ["NaN", *(pytest.param(what, marks=pytest.mark.slow) for what in ("Infinity", "numbers"))]
)
def test_weights_that_are_no_numbers_are_reported(tmp_path: Path, what: str) -> None:
    with Cluster(tmp_path, "Default", {"chief": 1}, "broken_weights.py", f"--loss={what}") as run:
        run.run()
        assert run["chief-0"].status.get("weights") == (None if what == "numbers" else what)
        assert ("training ends with weights that are" in run["chief-0"].output()) == (what != "numbers")
