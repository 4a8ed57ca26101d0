# SPDX-License-Identifier: Apache-2.0
"""The bits of jobs' last checkpoints: `python -m tests.chaos.support.weights DIRECTORY ...` prints their hashes."""

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
NO_VARIABLES = ("state", "replicas")
"""What a checkpoint holds beside variables: times, and each replica's place in the data."""
Bits = dict[str, str]
"""The hash of each variable in the newest checkpoint of each stage, by stage and name."""


def of_runs(directories: Iterable[Path]) -> list[Bits]:
    """Of the checkpoints in each directory. A process of its own reads them: TensorFlow would stay in this one."""
    command = [sys.executable, "-m", "tests.chaos.support.weights", *map(str, directories)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, f"checkpoints cannot be read: {done.stderr[-2000:]}"
    found: list[Bits] = json.loads(done.stdout)
    return found


def _bits(directory: Path) -> Bits:
    import tensorflow as tf

    found = {}
    for stage in sorted({file.parent for file in directory.rglob("ckpt-*.index")}):
        newest = tf.train.latest_checkpoint(str(stage))
        reader = tf.train.load_checkpoint(newest)
        name = stage.relative_to(directory)
        found[f"{name}"] = Path(newest).name
        for key in sorted(reader.get_variable_to_shape_map()):
            if key not in NO_VARIABLES and not key.startswith("_"):
                value = reader.get_tensor(key)
                found[f"{name}/{key}"] = hashlib.sha256(value.tobytes()).hexdigest()[:16]
    return found


if __name__ == "__main__":
    print(json.dumps([_bits(Path(argument)) for argument in sys.argv[1:]]))
