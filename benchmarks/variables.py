# SPDX-License-Identifier: Apache-2.0
"""Seconds in which a chief and two workers make the 750 variables of a ResNet50 and its Adam: dtjob, TensorFlow alone.

TensorFlow's MultiWorkerMirroredStrategy has the chief send each variable's initial value; under dtjob tasks compare all
of them at once (`dtjob_trainer/models/initial_values.py`).
"""

from pathlib import Path

from benchmarks.by_hand import HandWritten
from benchmarks.replica_specs import replica_specs
from benchmarks.rounds import take_turns
from tests.trainer.support.local_runs import LocalRun, manifest

GROUP = {"chief": 1, "worker": 2}
PROGRAM = Path(__file__).parent / "programs" / "variables.py"


def by_dtjob(directory: Path) -> float:
    """The program under `dtjob run`."""
    directory.mkdir(parents=True)
    replicas, result = replica_specs(GROUP), directory / "seconds"
    program = {"entrypoint": str(PROGRAM), "args": [str(result)]}
    file = manifest("digits.yaml", directory / "job.yaml", 1, replicaSpecs=replicas, program=program, checkpoint=None)
    with LocalRun(file, directory / "work") as run:
        said, _ = run.process.communicate()
        if run.process.returncode:
            raise RuntimeError(f"dtjob run has failed: {said}")
    return float(result.read_text().split()[0])


def by_hand(directory: Path) -> float:
    """The program with a TF_CONFIG alone."""
    result = directory / "seconds"
    with HandWritten(directory, GROUP, str(result), program=PROGRAM) as run:
        run.start()
        run.expect_success()
    return float(result.read_text().split()[0])


if __name__ == "__main__":
    take_turns("secondsToMakeVariables", __doc__, by_dtjob, by_hand)
