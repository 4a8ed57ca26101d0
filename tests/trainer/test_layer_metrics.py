# SPDX-License-Identifier: Apache-2.0
"""Metrics that a layer's call updates, of a model without its own train_step."""

import json
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster


def test_metrics_of_layers_equal_those_of_one_device(tmp_path: Path) -> None:
    """Of three replicas two have no row in the last batch, 61 examples are 61 all the same; and a number for each batch
    counts by rows, of which replicas have 6, 7 and 7."""
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, "layer_metrics.py", options={"logicalCPUs": 3}) as run:
        run.run()
        line = next(line for line in run["chief-0"].output().splitlines() if line.startswith("seen "))
        seen = json.loads(line.removeprefix("seen "))
        assert (seen["rows"], seen["val_rows"]) == (61, 61)
        assert seen["level"] == seen["val_level"] == pytest.approx(seen["wanted"], rel=1e-5)
