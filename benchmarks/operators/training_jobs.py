# SPDX-License-Identifier: Apache-2.0
"""The sides of a comparison that trains: what a user of each system writes for the same training."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from benchmarks.operators.sides import Dtjob, Side, TFJob
from benchmarks.peers import training_operator
from benchmarks.replica_specs import replica_specs
from dtjob.api.job import API_VERSION, KIND
from tools.cluster.rest import Object

DIRECTORY = "/data"
"""Where each pod sees the job's volume: program, checkpoints, and the log of steps."""
GROUPS: Mapping[str, Mapping[str, int]] = {
    "MultiWorkerMirrored": {"chief": 1, "worker": 2},
    "ParameterServer": {"chief": 1, "worker": 2, "ps": 1},
}
OWN_LOOPS: Mapping[str, str] = {"MultiWorkerMirrored": "keras", "ParameterServer": "coordinator"}
"""The program's loop that knows nothing of dtjob."""
_TFJOB_ROLES = {"chief": "Chief", "worker": "Worker", "ps": "PS"}


@dataclass(frozen=True)
class Training:
    """One training: its name is that of its claim, too. It saves each `every` steps."""

    name: str
    strategy: str
    image: str
    every: int

    def command(self, loop: str) -> list[str]:
        """The program's arguments, with its path before them."""
        return [f"{DIRECTORY}/recovery.py", loop, DIRECTORY, str(self.every)]

    @property
    def own_loop(self) -> str:
        """The program's loop that knows nothing of dtjob."""
        return OWN_LOOPS[self.strategy]


class Trains(Side, ABC):
    """A side that can train."""

    @abstractmethod
    def training(self, training: Training) -> Object:
        """The manifest."""


class Supervised(Dtjob, Trains):
    """dtjob with its trainer: `dt.fit`, saves as the manifest says, survivors that start again in their containers."""

    def training(self, training: Training) -> Object:
        """The manifest."""
        entry, *arguments = training.command("dtjob")
        return _dtjob(
            training, {"program": {"entrypoint": entry, "args": arguments}}, {}, {"everySteps": training.every}
        )


class OwnImage(Dtjob, Trains):
    """dtjob with the very program that TFJob runs: after a failure all pods are replaced."""

    name = "dtjob-own-image"

    def training(self, training: Training) -> Object:
        """The manifest."""
        command = ["python3", *training.command(training.own_loop)]
        template = {"template": {"spec": {"containers": [{"name": "tensorflow", "command": command}]}}}
        return _dtjob(training, {}, template, {})


class Restarted(TFJob, Trains):
    """TFJob, tuned, under one of its restart policies."""

    def __init__(self, name: str, policy: str) -> None:
        super().__init__(name, training_operator.TUNED)
        self._policy = policy

    def training(self, training: Training) -> Object:
        """The manifest."""
        container = {
            "name": "tensorflow",
            "image": training.image,
            "command": ["python3", *training.command(training.own_loop)],
            "volumeMounts": [{"name": "data", "mountPath": DIRECTORY}],
        }
        claim = {"name": "data", "persistentVolumeClaim": {"claimName": training.name}}
        template = {"spec": {"containers": [container], "volumes": [claim]}}
        replicas = {
            _TFJOB_ROLES[role]: {"replicas": count, "restartPolicy": self._policy, "template": template}
            for role, count in GROUPS[training.strategy].items()
        }
        spec = {"runPolicy": {"cleanPodPolicy": "Running"}, "tfReplicaSpecs": replicas}
        return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": training.name}, "spec": spec}


SIDES: dict[str, Callable[[], Trains]] = {
    "dtjob": Supervised,
    "dtjob-own-image": OwnImage,
    "tfjob": lambda: Restarted("tfjob", "ExitCode"),
    "tfjob-onfailure": lambda: Restarted("tfjob-onfailure", "OnFailure"),
}
"""All by name. `tfjob` makes failed pods anew, `tfjob-onfailure` has the kubelet start their containers again."""


def _dtjob(training: Training, more: Object, each: Object, saves: Object) -> Object:
    """A job of dtjob's; `each` belongs to every role, `saves` to the checkpoint."""
    volume = {"persistentVolumeClaim": {"claimName": training.name}}
    spec = {
        "strategy": training.strategy,
        "image": training.image,
        "replicaSpecs": replica_specs(GROUPS[training.strategy], **each),
        "checkpoint": {"storage": {"volume": volume, "mountPath": DIRECTORY, "mountOn": "All"}, **saves},
        **more,
    }
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": {"name": training.name}, "spec": spec}
