# SPDX-License-Identifier: Apache-2.0
"""Rules of placements: each against one device, of made-up rows. dtjob_trainer.placement."""

import json
from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, by_hand

TOLERANCE = 1e-5


@pytest.mark.timeout(600)
def test_each_rule_gives_what_one_device_has_of_value_and_gradients(tmp_path: Path) -> None:
    """Also where one of two replicas has no row."""
    lines = by_hand("placement_rules.py", directory=tmp_path).splitlines()
    found = json.loads(next(line for line in lines if line.startswith("found ")).removeprefix("found "))
    wrong = {
        name: differences
        for name, differences in found.items()
        if any(isinstance(each, str) or each > TOLERANCE for each in differences)
    }
    assert not wrong
    assert len(found) > 200


def test_a_step_of_a_compiled_model_exchanges_all_gradients_at_once_and_nothing_else(tmp_path: Path) -> None:
    """Each exchange costs as much as a small layer: results of metrics, which nobody reads within a step, have none."""
    file, options = tmp_path / "found.json", {"logicalCPUs": 2}
    with Cluster(
        tmp_path, "Mirrored", {"chief": 1}, "exchanges.py", options=options, env={"EXCHANGES": str(file)}
    ) as run:
        run.run()
    assert json.loads(file.read_text()) == {"keras": 2, "tf_keras": 2}
