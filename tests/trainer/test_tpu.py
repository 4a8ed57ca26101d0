# SPDX-License-Identifier: Apache-2.0
"""Strategy TPU without a TPU: a clear error and an end, not TensorFlow's silence; its steps on stand-ins of CPUs."""

from pathlib import Path

import pytest

from dtjob.local.processes.addresses import free_ports
from tests.trainer.support.harness import PROGRAMS, Cluster


@pytest.mark.parametrize("address", [None, pytest.param("no-such-tpu", marks=pytest.mark.slow)])
def test_without_a_tpu_the_error_says_what_is_needed(tmp_path: Path, address: str | None) -> None:
    options = {"tpu": {"address": address}} if address else {}
    with Cluster(tmp_path, "TPU", {"chief": 1}, "train.py", options=options) as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert f"no TPU at '{address or 'local'}'" in run["chief-0"].output()
        assert "needs google.com/tpu in the pod" in run["chief-0"].output()


@pytest.mark.slow  # it waits for tpu.py's limit
def test_a_dead_address_ends_the_process(tmp_path: Path) -> None:
    """TensorFlow alone was seen to wait for 1500 s; nothing listens on the port."""
    (port,) = free_ports(1)
    with Cluster(
        tmp_path, "TPU", {"chief": 1}, "train.py", options={"tpu": {"address": f"grpc://127.0.0.1:{port}"}}
    ) as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert f"no TPU answered at 'grpc://127.0.0.1:{port}' within" in run["chief-0"].output()


@pytest.mark.parametrize("kind", [pytest.param("mirrored", marks=pytest.mark.slow), "xla"])
def test_replicas_on_cpus_in_place_of_a_tpu_train_what_one_device_trains(tmp_path: Path, kind: str) -> None:
    """Training takes whole batches; the last of validation, 45 examples, does not divide by two replicas."""
    arguments = ("--plain", "--examples=960", "--held-out=301", "--epochs=2")
    metrics = []
    for strategy in ("Default", "TPU"):
        with Cluster(
            tmp_path / strategy,
            strategy,
            {"chief": 1},
            "train.py",
            *arguments,
            options={"logicalCPUs": 2} if (strategy, kind) == ("TPU", "mirrored") else {},
            checkpoint={"everySteps": 10},
            runner=(str(PROGRAMS / "tpu_stand_in.py"), kind) if strategy == "TPU" else ("-m", "dtjob_trainer.run"),
        ) as run:
            run.run()
            status = run["chief-0"].status
            assert status["resume"] == "exact"
            assert ("compiled by XLA" in run["chief-0"].output()) == (strategy == "TPU" and kind == "xla")
            metrics.append(status["metrics"])
    assert metrics[1] == pytest.approx(metrics[0], rel=1e-4)


def test_a_batch_that_does_not_divide_by_the_replicas_is_refused(tmp_path: Path) -> None:
    with Cluster(
        tmp_path,
        "TPU",
        {"chief": 1},
        "train.py",
        "--batch-size=33",
        options={"logicalCPUs": 2},
        runner=(str(PROGRAMS / "tpu_stand_in.py"), "mirrored"),
    ) as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "a batch size of 33 does not divide by the 2 replicas" in run["chief-0"].output()


@pytest.mark.parametrize("data", ["arrays", pytest.param("distributed", marks=pytest.mark.slow)])
def test_a_custom_loop_takes_only_what_the_strategy_has_distributed(tmp_path: Path, data: str) -> None:
    with Cluster(
        tmp_path,
        "TPU",
        {"chief": 1},
        "custom.py",
        f"--data={data}",
        "--total-steps=20",
        options={"logicalCPUs": 2},
        runner=(str(PROGRAMS / "tpu_stand_in.py"), "mirrored"),
    ) as run:
        run.start()
        taken = data == "distributed"
        assert run["chief-0"].exit_code() == (0 if taken else 1)
        assert run["chief-0"].status.get("step", 0) == (20 if taken else 0)
        assert ("dt.strategy().experimental_distribute_dataset" in run["chief-0"].output()) != taken
