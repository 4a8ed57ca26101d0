# SPDX-License-Identifier: Apache-2.0
"""A proxy that the containers' environment names is not asked for the way from one task to another."""

from pathlib import Path

import pytest

from tests.trainer.support.harness import Cluster, free_ports


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        ("MultiWorkerMirrored", {"chief": 1, "worker": 1}),
        pytest.param("ParameterServer", {"chief": 1, "worker": 1, "ps": 1}, marks=pytest.mark.slow),
    ],
)
def test_tasks_that_have_a_proxy_train_together(tmp_path: Path, strategy: str, counts: dict[str, int]) -> None:
    (port,) = free_ports(1)
    proxy = f"http://127.0.0.1:{port}"  # nobody is there
    env = {"http_proxy": proxy, "https_proxy": proxy, "no_proxy": "", "no_grpc_proxy": ""}
    with Cluster(tmp_path, strategy, counts, "train.py", "--epochs=1", env=env) as run:
        run.start()
        run.expect_success("chief-0")  # ParameterServer's others serve for ever
