# SPDX-License-Identifier: Apache-2.0
"""Which GPUs of this machine each task of a run sees, and whether it has a TPU. Pure but for looks at directories."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from dtjob.local.processes.command import training_container
from dtjob.objects import labels
from dtjob.objects.manifest import Manifest
from dtjob.objects.pod.accelerators import gpus_of

VARIABLE = "CUDA_VISIBLE_DEVICES"
GPUS = Path("/proc/driver/nvidia/gpus")
"""The kernel's driver has a directory there for each GPU."""


TPUS = ("accel[0-9]*", "vfio/[0-9]*")
"""Files below /dev of the chips of a TPU."""


def has_tpu(directory: Path = Path("/dev")) -> bool:
    """Whether this machine has chips of a TPU."""
    return any(True for pattern in TPUS for _ in directory.glob(pattern))


def devices_here(environ: Mapping[str, str], directory: Path = GPUS) -> list[str]:
    """The GPUs of Nvidia that this process may use: all of this machine, or those of CUDA_VISIBLE_DEVICES."""
    if VARIABLE not in environ:
        return [str(number) for number in range(len(list(directory.iterdir())))] if directory.is_dir() else []
    found: list[str] = []
    for name in map(str.strip, environ[VARIABLE].split(",")):
        if name in ("", "-1"):  # CUDA reads no further
            break
        found.append(name)
    return found


def wanted(pods: Iterable[Manifest]) -> int:
    """How many GPUs these pods ask for together."""
    return sum(gpus_of(training_container(pod)) for pod in pods)


def shares(pods: Sequence[Manifest], devices: Sequence[str]) -> dict[str, str]:
    """Task to its value of CUDA_VISIBLE_DEVICES. As in a cluster, a task that asks for no GPUs sees none.

    Empty if no task asks for GPUs, or if there are not enough: then all tasks share the GPUs.
    """
    if not 0 < wanted(pods) <= len(devices):
        return {}
    found, at = {}, 0
    for pod in pods:
        count = gpus_of(training_container(pod))
        found[labels.task_id(pod)] = ",".join(devices[at : at + count]) or "-1"
        at += count
    return found
