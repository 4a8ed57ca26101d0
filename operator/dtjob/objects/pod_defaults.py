# SPDX-License-Identifier: Apache-2.0
"""What the operator gives to the pods of all jobs, below what their templates say (`jobs` in the chart's values)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

Name = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^\S+$")]


class _Given(BaseModel):
    """Values as JSON has them."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, defer_build=True)


class Variable(_Given):
    """An environment variable with a literal value."""

    name: Name
    value: str = ""


class Secret(_Given):
    """A Secret of the namespace of the job."""

    name: Name


class PodDefaults(_Given):
    """Parts of a pod template that apply if the template of a role leaves them out."""

    annotations: Mapping[str, str] = Field(default_factory=dict)
    env: tuple[Variable, ...] = ()
    image_pull_secrets: tuple[Secret, ...] = ()
    node_selector: Mapping[str, str] = Field(default_factory=dict)
    tolerations: tuple[Mapping[str, str | int], ...] = ()
    priority_class_name: Name | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """The defaults that this JSON says. Raises ValueError, with the field, on what they cannot be."""
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            raise ValueError(f"{'.'.join(map(str, first['loc'])) or 'the text'}: {first['msg']}") from None

    def below(self, template: Mapping[str, Any]) -> dict[str, Any]:
        """The template with what it leaves out. Values of the template apply where both have one."""
        metadata, spec = dict(template.get("metadata") or {}), dict(template.get("spec") or {})
        if self.annotations:
            metadata["annotations"] = {**self.annotations, **(metadata.get("annotations") or {})}
        if self.node_selector:
            spec["nodeSelector"] = {**self.node_selector, **(spec.get("nodeSelector") or {})}
        if self.tolerations:
            theirs = spec.get("tolerations") or []
            spec["tolerations"] = [*theirs, *(dict(one) for one in self.tolerations if one not in theirs)]
        if self.image_pull_secrets and not spec.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [one.model_dump() for one in self.image_pull_secrets]
        if self.priority_class_name and not spec.get("priorityClassName"):
            spec["priorityClassName"] = self.priority_class_name
        return {**template, "metadata": metadata, "spec": spec}

    def variables(self, others: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
        """The variables that are not among these others."""
        names = {one["name"] for one in others}
        return [one.model_dump() for one in self.env if one.name not in names]


NO_POD_DEFAULTS = PodDefaults.model_construct()
