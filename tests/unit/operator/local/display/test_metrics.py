# SPDX-License-Identifier: Apache-2.0
from dtjob.local.display.metrics import metrics_text


def test_metrics_that_are_no_numbers_are_left_out():
    assert metrics_text({"loss": 1.0, "note": "x", "accuracy": 0.5}) == "accuracy 0.5, loss 1"
