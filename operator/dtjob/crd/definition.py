# SPDX-License-Identifier: Apache-2.0
"""The CustomResourceDefinition, made from the models and the rules. `make crd` writes it to its files.

An API server takes 10 to 50 µs for each entry of x-kubernetes-validations. Each look at a field of `spec` copies the
schemas of all its fields. So rules that look at the same part of a job share that look: those with one frame and one
reason are one entry. If several of them are broken, the API server says one, at the path that all of them share.
"""

import json
from collections.abc import Iterable, Iterator
from copy import deepcopy
from itertools import takewhile
from typing import Any

from dtjob.api.job import GROUP, KIND, PLURAL, VERSION
from dtjob.api.status.status import Status
from dtjob.crd.rule import Reason, Rule
from dtjob.crd.rules.changes import CHANGE_RULES
from dtjob.crd.rules.registry import RULES
from dtjob.crd.schema import PRESERVE, VALIDATIONS, Schema, spec_schema, structural

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
        "categories": ["training"],
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
        "description": "TensorFlow training in one or more pods, which continues from its last checkpoint after a "
        "failure.",
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string", "description": f"API version of the job: {GROUP}/{VERSION}."},
            "kind": {"type": "string", "description": f"Kind of the object: {KIND}."},
            "metadata": {"type": "object"},
            "spec": deepcopy(spec_schema()),
            "status": status_schema(),
        },
    }
    for path, validation in entries((*RULES, *CHANGE_RULES)):
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


def status_schema() -> Schema:
    """The schema of a job's status, from its models. The API server fills in no default there: only the operator writes
    it."""
    made = structural(Status)
    _drop_defaults(made)
    # Unstable: nobody is to read it, so nothing of it is described.
    about = made["properties"]["internal"]["description"]
    made["properties"]["internal"] = {"type": "object", "description": about, PRESERVE: True}
    return made


def _drop_defaults(schema: Schema) -> None:
    schema.pop("default", None)
    for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            _drop_defaults(part)


def entries(rules: Iterable[Rule]) -> Iterator[tuple[str, dict[str, Any]]]:
    """All entries, each with the path of its rules."""
    groups: dict[object, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(_shared(rule), []).append(rule)
    for group in groups.values():
        yield group[0].at, _entry(group)


def _shared(rule: Rule) -> object:
    """What is the same for all rules of an entry. A rule without a frame has an entry of its own."""
    if rule.frame == "{}":
        return rule
    return rule.frame, rule.at, rule.reason, rule.is_for_creation


def _entry(rules: list[Rule]) -> dict[str, Any]:
    first = rules[0]
    cel = first.whole
    if len(rules) > 1:
        cel = first.frame.replace("{}", f"({' && '.join(f'({rule.cel})' for rule in rules)})")
    entry: dict[str, Any] = {"rule": cel, "message": first.message.replace("{}", "…") if first.names else first.message}
    if first.reason is not Reason.INVALID:  # that is an API server's default, and the definition has to stay small
        entry["reason"] = first.reason.value
    if first.is_for_creation:
        entry |= {"rule": f"oldSelf.hasValue() || ({cel})", "optionalOldSelf": True}
    if len(rules) > 1 or first.names:
        entry["messageExpression"] = _said(rules)
    field = _common(rule.field for rule in rules)
    if field.startswith("metadata"):  # which a fieldPath may not name
        entry["message"] = f"{field}: {first.message}"
    elif field:
        entry["fieldPath"] = f".{field}"
    return entry


def _common(fields: Iterable[str]) -> str:
    """The longest path that all these fields are below."""
    steps = zip(*(field.split(".") for field in fields), strict=False)
    return ".".join(names[0] for names in takewhile(lambda names: len(set(names)) == 1, steps))


def _said(rules: list[Rule]) -> str:
    """CEL: the message of the first rule that is broken."""
    *others, last = rules
    parts = [f"!({rule.whole}) ? {_message(rule)}" for rule in others]
    return " : ".join([*parts, _message(last)])


def _message(rule: Rule) -> str:
    """CEL: what the rule says of `self`."""
    if not rule.names:
        return _quoted(rule.message)
    before, after = rule.message.split("{}")
    return f"{_quoted(before)} + self.{rule.names} + {_quoted(after)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
