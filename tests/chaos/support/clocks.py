# SPDX-License-Identifier: Apache-2.0
"""Wall clocks of Python processes in pods that jump, by a small library that is preloaded (`clock.c`).

Nobody can set the clock of one process, and the kernel's time namespaces hold monotonic clocks only. libfaketime 0.9.10
makes `time.sleep` of Python 3.11 fail (EINVAL).
"""

import base64
import subprocess
from pathlib import Path

from tools.cluster.rest import Object

SOURCE = Path(__file__).with_name("clock.c")
CONFIG_MAP = "clock"
_LIBRARY = "libclock.so"
ENVIRONMENT = {"LD_PRELOAD": f"/clock-library/{_LIBRARY}"}
MOUNTS = [
    {"name": "clock-library", "mountPath": "/clock-library", "readOnly": True},
    {"name": "clock", "mountPath": "/clock"},
]
VOLUMES: list[Object] = [
    {"name": "clock-library", "configMap": {"name": CONFIG_MAP}},
    {"name": "clock", "emptyDir": {}},
]


def config_map(directory: Path) -> Object:
    """The ConfigMap with the library, which gcc makes."""
    library = directory / _LIBRARY
    command = ["gcc", "-shared", "-fPIC", "-O2", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True)
    data = base64.b64encode(library.read_bytes()).decode()
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP},
        "binaryData": {_LIBRARY: data},
    }


def file_of(pod: Object, nodes: Path) -> Path:
    """The file that says by how many seconds a pod's clocks are off. `nodes` is the directory of all nodes."""
    volumes = nodes / pod["spec"]["nodeName"] / "lib" / "kubelet" / "pods" / pod["metadata"]["uid"] / "volumes"
    return volumes / "kubernetes.io~empty-dir" / "clock" / "offset"
