# SPDX-License-Identifier: Apache-2.0
"""`dtjob init`: a first script, and the manifest of its job."""

import re
from pathlib import Path

from dtjob.bad_input import BadInput

_NAME = re.compile(r"[a-z](?:[a-z0-9-]{0,38}[a-z0-9])?")
"""Short enough for the host names of many tasks."""

_SCRIPT = '''"""Trains a small model. Replace data and model with your own."""

import keras
import numpy

random = numpy.random.default_rng(0)
x = random.normal(size=(4096, 16)).astype("float32")
y = x.sum(axis=1, keepdims=True)

model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(32, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="adam", loss="mse")
model.fit(x, y, batch_size=64, epochs=5)
'''
_MANIFEST = """# dtjob run job.yaml                                     here
# dtjob submit train.py --workers 2 --claim-size 1Gi     in a cluster
apiVersion: training.dtjob.dev/v1beta1
kind: DistributedTrainingJob
metadata: {{name: {name}}}
spec:
  strategy: MultiWorkerMirrored
  program: {{entrypoint: train.py}}
  replicaSpecs:
    worker: {{replicas: 2}}
  checkpoint:
    storage:
      volumeClaimTemplate:
        spec: {{accessModes: [ReadWriteOnce], resources: {{requests: {{storage: 1Gi}}}}}}
    everyEpochs: 1
  tensorBoard: {{}}
"""


def write(directory: Path, name: str) -> list[Path]:
    """Write both files. Returns their names. Raises BadInput if one is there, or the name is none."""
    if not _NAME.fullmatch(name):
        raise BadInput(f"--name: {name!r} is no name; write lower-case letters, digits and hyphens, such as first-1")
    texts = {directory / "train.py": _SCRIPT, directory / "job.yaml": _MANIFEST.format(name=name)}
    for file in texts:
        if file.exists():
            raise BadInput(f"{file}: is there already; choose another folder")
    directory.mkdir(parents=True, exist_ok=True)
    for file, text in texts.items():
        file.write_text(text)
    return list(texts)
