# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.engines.exactness: what of the devices lets a restart come to other bits."""

import pytest
import tensorflow as tf

from dtjob_trainer.engines import exactness


@pytest.mark.parametrize(("gpus", "ordered", "reasons"), [(0, False, 0), (1, False, 1), (1, True, 0)])
def test_gpus_are_exact_where_the_program_asks_for_it(
    monkeypatch: pytest.MonkeyPatch, gpus: int, ordered: bool, reasons: int
) -> None:
    found = [tf.config.PhysicalDevice("/physical_device:GPU:0", "GPU")] * gpus
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: found if kind == "GPU" else [])
    monkeypatch.setattr(exactness.tensorflow, "is_deterministic", lambda: ordered)
    assert len(exactness.of_devices()) == reasons
