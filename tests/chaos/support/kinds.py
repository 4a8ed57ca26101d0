# SPDX-License-Identifier: Apache-2.0
"""The four jobs that run side by side, each again and again."""

import os
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.support import clocks
from tests.chaos.support.bed import JOBS
from tests.e2e.jobs.support.training_job import digits
from tools.cluster.rest import Object

PROGRAMS = Path(__file__).resolve().parents[2] / "programs"
GUIDE = PROGRAMS / "keras_guides" / "transfer_learning.py"
"""Two calls of fit, and nothing of dtjob."""
EPOCHS = int(os.environ.get("DTJOB_CHAOS_EPOCHS") or 40)
"""The epochs of jobs that train in several processes. Each epoch has 23 steps."""
SOURCE = "guide"
"""The name of the ConfigMap that holds the guide."""


@dataclass(frozen=True)
class Kind:
    """One of the jobs. `synchronous`: each run comes to the same bits."""

    name: str
    strategy: str
    roles: Object
    epochs: int = EPOCHS
    every_steps: int = 20
    guide: bool = False
    synchronous: bool = True
    more: Object = field(default_factory=dict)

    def manifest(self, name: str, image: str) -> Object:
        """The job of this kind with this name, and with a claim of the same name."""
        roles = {role: _with_clock(replica) for role, replica in self.roles.items()}
        job = digits(
            image,
            name,
            self.strategy,
            epochs=self.epochs,
            every_steps=self.every_steps,
            replicaSpecs=roles,
            failurePolicy={
                # far more than by default, because nobody else kills so often
                "maxRestartsWithoutProgress": 1000,
                "maxDisruptionsWithoutProgress": 1000,
                "backoff": {"initialSeconds": 1, "maxSeconds": 5},
                "stallTimeoutSeconds": 180,
            },
            **self.more,
        )
        job["metadata"]["namespace"] = JOBS
        program = job["spec"]["program"]
        if self.guide:
            job["spec"]["program"] = program = {"source": {"configMap": {"name": SOURCE}}, "entrypoint": GUIDE.name}
        program["env"] = [{"name": name, "value": value} for name, value in clocks.ENVIRONMENT.items()]
        return job


KINDS = (
    Kind("multi-worker", "MultiWorkerMirrored", {"chief": {}, "worker": {"replicas": 1}, "evaluator": {}}),
    Kind(
        "parameter-server",
        "ParameterServer",
        {"chief": {}, "worker": {"replicas": 1}, "ps": {}},
        epochs=max(1, EPOCHS // 2),
        synchronous=False,
    ),
    Kind("mirrored", "Mirrored", {"chief": {}}, epochs=4 * EPOCHS, more={"strategyOptions": {"logicalCPUs": 2}}),
    Kind("guide", "MultiWorkerMirrored", {"chief": {}, "worker": {"replicas": 1}}, every_steps=2, guide=True),
)


def source() -> Object:
    """The ConfigMap with the guide's script, unchanged."""
    data = {GUIDE.name: GUIDE.read_text()}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": SOURCE}, "data": data}


def _with_clock(replica: Object) -> Object:
    container = {"name": "tensorflow", "volumeMounts": clocks.MOUNTS}
    return {**replica, "template": {"spec": {"volumes": clocks.VOLUMES, "containers": [container]}}}
