# SPDX-License-Identifier: Apache-2.0
"""`fit` on every kind of data, under each strategy, against Keras's own `Model.fit` on one device: to 1e-6."""

from pathlib import Path

import pytest

from tests.trainer.support.one_device import check

ANYWHERE = (
    "unknown_length,files_and_buckets,data_that_runs_out,py_dataset,lists,function_of_no_argument,smallest_batches"
)
COLLECTIVE = ANYWHERE + ",ragged_and_sparse"
ONE_PROCESS = COLLECTIVE + ",generators"
LEGACY = "unknown_length,files_and_buckets,lists,function_of_no_argument,smallest_batches,sequence"
"""tf_keras has no PyDataset, and takes other things for data that has run out."""
PARAMETER_SERVER = {"chief": 1, "worker": 1, "ps": 1}
"""With one worker, steps come in their order, and can be compared."""


@pytest.mark.slow  # test_one_device.py trains on some of them in every run
@pytest.mark.parametrize(
    ("package", "strategy", "counts", "devices", "cases"),
    [
        ("keras", "Default", {"chief": 1}, 0, ONE_PROCESS),
        ("keras", "OneDevice", {"chief": 1}, 0, ONE_PROCESS),
        ("keras", "Mirrored", {"chief": 1}, 3, ONE_PROCESS),
        ("keras", "CentralStorage", {"chief": 1}, 3, ONE_PROCESS),
        ("keras", "MultiWorkerMirrored", {"chief": 1, "worker": 2}, 0, COLLECTIVE),
        ("keras", "ParameterServer", PARAMETER_SERVER, 0, ANYWHERE),
        ("tf_keras", "Mirrored", {"chief": 1}, 3, LEGACY),
        ("tf_keras", "CentralStorage", {"chief": 1}, 3, LEGACY),
        ("tf_keras", "MultiWorkerMirrored", {"worker": 2}, 0, LEGACY),
        ("tf_keras", "ParameterServer", PARAMETER_SERVER, 0, LEGACY),
    ],
)
@pytest.mark.timeout(900)
def test_every_kind_of_data_equals_one_device(
    tmp_path: Path, package: str, strategy: str, counts: dict[str, int], devices: int, cases: str
) -> None:
    check(tmp_path, strategy, counts, devices, cases, package=package, examples=61)
