"""Metrics that a layer's call updates, of a model without its own train_step."""

import json
from pathlib import Path

from tests.trainer.support.harness import Cluster


def test_rows_that_stand_in_are_not_counted(tmp_path: Path) -> None:
    """Of three replicas two have no row in the last batch: 61 examples are 61."""
    with Cluster(tmp_path, "Mirrored", {"chief": 1}, "layer_metrics.py", options={"logicalCPUs": 3}) as run:
        run.run()
        line = next(line for line in run["chief-0"].output().splitlines() if line.startswith("seen "))
        seen = json.loads(line.removeprefix("seen "))
        assert (seen["rows"], seen["val_rows"]) == (61, 61)
