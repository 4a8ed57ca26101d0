# SPDX-License-Identifier: Apache-2.0
"""Steps a second of training that waits for decoded images: in the training pod, and with 1, 2 and 4 data workers.

All runs are `dtjob run` of examples/images.py, one after another. Data workers on this machine add no cores to it. With
two cores the runs show what the service costs, and not what more machines bring.
"""

import argparse
import json
import tempfile
import time
from pathlib import Path

from tests.trainer.support.local_runs import LocalRun, Statuses, manifest

CHECKPOINTS = {"storage": {"volume": {"emptyDir": {}}}}
IMAGES, BATCH = 1024, 32


def steps_per_second(directory: Path, workers: int, epochs: int) -> float:
    """Of all epochs but the first and the last, by the chief's status."""
    directory.mkdir(parents=True)
    roles = {"chief": {}, **({"data": {"replicas": workers}} if workers else {})}
    program = {"entrypoint": "examples/images.py", "args": [f"--epochs={epochs}", f"--images={IMAGES}"]}
    file = manifest(
        "images.yaml", directory / "job.yaml", epochs, program=program, replicaSpecs=roles, checkpoint=CHECKPOINTS
    )
    steps = IMAGES // BATCH
    with LocalRun(file, directory / "work") as run:

        def done(step: int) -> float:
            def reached(now: Statuses) -> bool:
                return (now.get("chief-0", {}).get("step") or 0) >= step

            run.wait_until(reached, f"step {step}")
            return time.monotonic()

        done(1)
        began = done(steps)
        return (epochs - 2) * steps / (done((epochs - 1) * steps) - began)


def main() -> None:
    """Print one JSON object: steps a second by the number of data workers; 0: in the training pod."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2, 4])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        found = {n: round(steps_per_second(Path(directory) / str(n), n, options.epochs), 2) for n in options.workers}
    print(json.dumps({"steps_per_second": found}))


if __name__ == "__main__":
    main()
