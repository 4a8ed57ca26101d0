# SPDX-License-Identifier: Apache-2.0
"""An example that trains until a test says that it is enough: no test guesses how fast its machine is."""

from typing import Any

from tests.e2e.jobs.support.training_job import TrainingJob, digits
from tools.cluster.rest import Api, Object

_CONFIG_MAP = "until-told"
_DIRECTORY = "/program"
_FILE = "until_told.py"
_ENOUGH = "/checkpoints/enough"
_PROGRAM = f"""
import pathlib
import time
import keras

class UntilTold(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        time.sleep(0.03)  # Other tests need the cores.

    def on_epoch_end(self, epoch, logs=None):
        if pathlib.Path("{_ENOUGH}").exists():
            self.model.stop_training = True

    def get_state(self):
        return {{}}

    def set_state(self, state):
        pass

example = pathlib.Path("/workspace/examples/EXAMPLE")
told = example.read_text().replace(" epochs=options.epochs,", " epochs=options.epochs, callbacks=[UntilTold()],")
exec(compile(told, str(example), "exec"), {{**globals(), "__file__": str(example)}})
"""
_ENDLESS = 100_000
"""Epochs."""


def until_told(
    api: Api, namespace: str, image: str, roles: Object, name: str = "digits", example: str = "digits.py", **spec: Any
) -> Object:
    """The job; makes the ConfigMap with its program, once in a namespace. `example`: the file of the program."""
    if _CONFIG_MAP not in [one["metadata"]["name"] for one in api.list("configmaps", namespace)]:
        metadata = {"name": _CONFIG_MAP}
        data = {_FILE: _PROGRAM.replace("EXAMPLE", example)}
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}
        api.create("configmaps", namespace, made)
    mounted = {role: _with_program(replica) for role, replica in roles.items()}
    job = digits(image, name, epochs=_ENDLESS, replicaSpecs=mounted, **spec)
    job["spec"]["program"]["entrypoint"] = f"{_DIRECTORY}/{_FILE}"
    return job


def enough(job: TrainingJob) -> None:
    """Have the training end with the epoch that it is at."""
    job.kubectl("exec", job.pods()["chief-0"]["metadata"]["name"], "--", "touch", _ENOUGH)


def _with_program(replica: Object) -> Object:
    template = replica.get("template", {"spec": {}})
    mount = {"name": "program", "mountPath": _DIRECTORY, "readOnly": True}
    pod = {
        **template["spec"],
        "volumes": [{"name": "program", "configMap": {"name": _CONFIG_MAP}}],
        "containers": [{"name": "tensorflow", "volumeMounts": [mount]}],
    }
    return {**replica, "template": {**template, "spec": pod}}
