# SPDX-License-Identifier: Apache-2.0
"""The CustomResourceDefinition, made from the models and the rules. `make crd` writes it to its files."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from dtjob.api.job import GROUP, KIND, PLURAL, VERSION
from dtjob.crd.entries import entries
from dtjob.crd.rules.registry import RULES, UNCHANGING
from dtjob.crd.schema import VALIDATIONS, Schema, spec_schema
from dtjob.crd.status_schema import status_schema

COLUMNS = (
    ("Phase", "string", ".status.phase", 0, "The state of the job in one word."),
    ("Ready", "string", ".status.ready", 0, "Tasks that run or have finished, of all tasks."),
    ("Step", "integer", ".status.progress.step", 0, "Training steps that are done."),
    ("Restarts", "integer", ".status.restarts.total", 0, "Restarts of training, of any cause."),
    ("Reason", "string", ".status.reason", 0, "Why the job is in this phase."),
    ("Age", "date", ".metadata.creationTimestamp", 0, "Time since the job was created."),
    ("Strategy", "string", ".spec.strategy", 1, "The tf.distribute strategy."),
    ("Progress(%)", "integer", ".status.progress.percentage", 1, "Percentage of the training steps that is done."),
    ("ETA(s)", "integer", ".status.progress.estimatedRemainingSeconds", 1, "Estimated seconds to the last step."),
    ("Checkpoint", "integer", ".status.checkpoint.step", 1, "Training step of the newest checkpoint."),
    ("Goodput(%)", "integer", ".status.goodput.percentage", 1, "Percentage of time in steps that were not lost."),
    ("Workers", "integer", ".status.workers.replicas", 1, "Workers that train together."),
)
"""What `kubectl get dtjobs` shows: header, type, path, priority (1: with -o wide only), description."""

SELECTABLE = (".status.phase", ".spec.strategy")
"""What `kubectl get dtjobs --field-selector` takes."""

SCALE = {
    "specReplicasPath": ".spec.replicaSpecs.worker.replicas",
    "statusReplicasPath": ".status.workers.replicas",
    "labelSelectorPath": ".status.workers.selector",
}
"""What `kubectl scale` and an HPA write and read. A job without workers has nothing at the first path, which the API
server says."""


def crd() -> dict[str, Any]:
    """The whole CustomResourceDefinition."""
    columns = [
        {"name": name, "type": kind, "jsonPath": path, "description": description}
        | ({"priority": priority} if priority else {})  # a 0 is not stored, and would make each apply a change
        for name, kind, path, priority, description in COLUMNS
    ]
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}, "scale": SCALE},
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": path} for path in SELECTABLE],
        "schema": {"openAPIV3Schema": schema()},
    }
    names = {
        "kind": KIND,
        "listKind": f"{KIND}List",
        "plural": PLURAL,
        "singular": KIND.lower(),
        "shortNames": ["dtj", "dtjob", "dtjobs"],
        "categories": ["all", "training"],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PLURAL}.{GROUP}"},
        "spec": {"group": GROUP, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def schema() -> Schema:
    """The schema of a job, with its rules."""
    root: Schema = {
        "type": "object",
        "description": "A distributed TensorFlow training job.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"API version of the job: {GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"Kind of the object: {KIND}."},
            "metadata": {"type": "object"},
            "spec": deepcopy(spec_schema()),
            "status": status_schema(),
        },
    }
    placed = [*entries(RULES), *(placed for field in UNCHANGING for placed in field.validations())]
    for path, validation in placed:
        for part in _parts(root, path):
            part.setdefault(VALIDATIONS, []).append(validation)
    return root


def _parts(schema: Schema, path: str) -> Iterator[Schema]:
    """The schemas of the values at a rule's path."""
    if not path:
        yield schema
        return
    step, _, rest = path.partition(".")
    name = step.removesuffix("[]")
    for part in list(schema["properties"].values()) if name == "*" else [schema["properties"][name]]:
        yield from _parts(part["items"] if step.endswith("[]") else part, rest)
