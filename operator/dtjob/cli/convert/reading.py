# SPDX-License-Identifier: Apache-2.0
"""A TFJob as its API server has it: no nulls, no unknown fields, each field of its type. And what is said of it."""

from dataclasses import dataclass, field
from typing import Any

from dtjob.crd.answers.field_errors import open_block_errors
from dtjob.crd.answers.schemas import schema_of
from dtjob.crd.schema import PRESERVE, Schema

Fields = dict[str, Any]

PRUNED = "kubeflow.org/v1 has no such field here, so its API server prunes it and it has no effect; it is left out"


class CannotConvert(Exception):
    """The TFJob has no counterpart. The message names the field and the reason."""


@dataclass(frozen=True)
class Finding:
    """One line about a field of the TFJob. A warning says that something of meaning is lost or changes."""

    path: str
    message: str
    warning: bool

    def said_of(self, where: str) -> str:
        """The line, for a TFJob that was found there."""
        return f"{'warning' if self.warning else 'note'}: {where}: {self.path}: {self.message}"


@dataclass
class Findings:
    """The lines of one conversion, in the order in which they are found."""

    found: list[Finding] = field(default_factory=list)

    def warn(self, path: str, message: str) -> None:
        """Add a line about what is lost or changes its meaning."""
        self._add(Finding(path, message, warning=True))

    def note(self, path: str, message: str) -> None:
        """Add a line about what keeps its meaning in another form."""
        self._add(Finding(path, message, warning=False))

    def _add(self, finding: Finding) -> None:
        if finding not in self.found:
            self.found.append(finding)


def read(manifest: Any, said: Findings) -> Fields:
    """A copy of the TFJob without nulls, which are as if left out, and without fields that kubeflow.org/v1 does not
    have. Raises CannotConvert for a value of another type."""
    whole: Fields = _pruned(_without_nulls(manifest), _TFJOB, "", said)
    if wrong := next(open_block_errors(whole, _TFJOB), None):
        raise CannotConvert(str(wrong))
    return whole


def _block(*, is_open: bool = False, **fields: str | Schema) -> Schema:
    """A mapping with these fields. `is_open`: others are for whoever reads it."""
    properties = {name: schema_of(one) if isinstance(one, str) else one for name, one in fields.items()}
    return {"type": "object", "properties": properties, **({PRESERVE: True} if is_open else {})}


_METADATA = _block(is_open=True, labels="{any}", annotations="{any}")
_REPLICA = _block(replicas="int", restartPolicy="text", template=_block(metadata=_METADATA, spec="PodSpec"))
_GANG = _block(minAvailable="int", queue="text", minResources="any", priorityClass="text", scheduleTimeoutSeconds="int")
_RUN_POLICY = _block(
    cleanPodPolicy="text",
    ttlSecondsAfterFinished="int",
    activeDeadlineSeconds="int",
    backoffLimit="int",
    schedulingPolicy=_GANG,
    suspend="bool",
    managedBy="text",
)
_SPEC = _block(
    runPolicy=_RUN_POLICY,
    successPolicy="text",
    tfReplicaSpecs={"type": "object", "additionalProperties": _REPLICA},
    enableDynamicWorker="bool",
)
_TFJOB = _block(apiVersion="text", kind="text", metadata=_METADATA, spec=_SPEC, status="any")
"""kubeflow.org/v1 as its definition has it, but for texts with few values: `convert` reads those itself."""


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(name): _without_nulls(item) for name, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


def _pruned(value: Any, schema: Schema, path: str, said: Findings) -> Any:
    """The value without fields that the schema lacks, with a warning for each."""
    if isinstance(value, list):
        return [_pruned(item, schema.get("items", {}), f"{path}[{at}]", said) for at, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    known, further = schema.get("properties", {}), schema.get("additionalProperties")
    found = {}
    for name, item in value.items():
        where = f"{path}.{name}".lstrip(".")
        if known and name not in known and not isinstance(further, dict) and PRESERVE not in schema:
            said.warn(where, PRUNED)
        else:
            found[name] = _pruned(item, known.get(name, further) or {}, where, said)
    return found
