# SPDX-License-Identifier: Apache-2.0
"""What has to hold on GPUs, as far as a machine without any can tell."""

from pathlib import Path

from dtjob.local.processes.addresses import free_ports
from tests.trainer.support.harness import Cluster, by_hand


def test_arrays_and_what_is_saved_stay_in_the_hosts_memory(tmp_path: Path) -> None:
    """Arrays would be copied to a GPU whole for each step's rows, and what is being saved would stand there twice."""
    options = {"logicalCPUs": 2, "device": "CPU:1"}
    with Cluster(tmp_path, "OneDevice", {"chief": 1}, "host_memory.py", options=options) as run:
        run.run()
        said = run["chief-0"].output()
    assert "rows are taken on ['CPU:0']" in said
    assert "weights are on 1\nkept on 0 as 0.0" in said


def test_nccl_can_be_had(tmp_path: Path) -> None:
    """TensorFlow lets no collectives be configured once somebody has asked for its logical devices."""
    (port,) = free_ports(1)
    assert "made NCCL" in by_hand("nccl.py", str(port), directory=tmp_path)


def test_a_task_that_was_given_a_gpu_and_finds_none_says_so_and_ends(tmp_path: Path) -> None:
    env = {"DTJOB_GPUS": "1", "CUDA_VISIBLE_DEVICES": "7"}  # also where there is one
    with Cluster(tmp_path, "Default", {"chief": 1}, "unkept_state.py", env=env) as run:
        run.start()
        assert run["chief-0"].exit_code() == 1
        assert "Error: this task was given 1 of nvidia.com/gpu" in run["chief-0"].output()
