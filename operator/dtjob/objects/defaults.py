# SPDX-License-Identifier: Apache-2.0
"""What the operator gives to jobs that do not say it themselves. That is the trainer image, labels for their pods,
parts of pod templates (`jobs` in the chart's values), and who may read their status.

The image that a job began with is written into its status, so that a later default never reaches a running job.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic.alias_generators import to_camel

from dtjob.api.job import GROUP, Job
from dtjob.api.label_forms import check_name, check_value
from dtjob.api.spec.replica_specs import Role
from dtjob.api.spec.scheduling import GangProvider
from dtjob.objects import labels
from dtjob.objects.readers import Readers

Name = Annotated[str, StringConstraints(min_length=1, max_length=253, pattern=r"^\S+$")]


class _Given(BaseModel):
    """Values as JSON has them."""

    model_config = ConfigDict(alias_generator=to_camel, extra="forbid", frozen=True, strict=True, defer_build=True)


class Variable(_Given):
    """An environment variable: a literal value, or where it comes from, such as a Secret."""

    name: Name
    value: str | None = None
    value_from: Mapping[str, Mapping[str, Any]] | None = None


class Resources(_Given):
    """Requests and limits of the training container, by resource."""

    limits: Mapping[str, str | int | float] = Field(default_factory=dict)
    requests: Mapping[str, str | int | float] = Field(default_factory=dict)


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
    security_context: Mapping[str, Any] | None = None
    """In place of dtjob's own (`objects/pod/security.py`)."""
    resources: Resources = Field(default_factory=Resources.model_construct)

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

    def variables(self, others: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The variables that are not among these others."""
        names = {one["name"] for one in others}
        return [one.model_dump(by_alias=True, exclude_none=True) for one in self.env if one.name not in names]

    def with_resources(self, container: Mapping[str, Any]) -> dict[str, Any]:
        """The training container with requests and limits of the resources that it does not name."""
        theirs = dict(container.get("resources") or {})
        named = {name for kind in ("limits", "requests") for name in theirs.get(kind) or ()}
        for kind, amounts in (("limits", self.resources.limits), ("requests", self.resources.requests)):
            if more := {name: amount for name, amount in amounts.items() if name not in named}:
                theirs[kind] = {**more, **(theirs.get(kind) or {})}
        return {**container, "resources": theirs} if theirs else dict(container)


IMAGE_MISSING = "ImageMissing"
MISSING_IMAGE_MESSAGE = (
    "spec.image is left out, and this operator has no default image: delete the job and apply it again with spec.image,"
    " or have the operator's default set (jobs.image in the chart's values, --default-image on its command line)"
)


@dataclass(frozen=True)
class Defaults:
    """The operator's `--default-…` options, and what depends on its other jobs. `image` None: every job has to name
    one."""

    image: str | None = None
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    pods: PodDefaults = field(default_factory=PodDefaults.model_construct)
    """What pod templates leave out."""
    readers: Readers = field(default_factory=Readers)
    """Who may read the status of jobs' tasks."""
    progress_every: timedelta = timedelta(seconds=10)
    """Progress alone is written to the API server no more often than this."""
    gang_provider: GangProvider = GangProvider.KUBERNETES
    """Whose PodGroups are made for jobs whose gang names no provider."""
    coscheduling_scheduler: str = "scheduler-plugins-scheduler"
    """What the scheduler with the Coscheduling plugin is called; by default as its own chart calls it."""
    directories_stay: bool = False
    """Whether a checkpoint directory outlives its pod without a volume: under `dtjob run`, where it is one of this
    machine's."""
    again: str = "create the job again"
    """What a user does after the mistake in a failed job is corrected."""
    anew: str = "use another checkpoint.storage"
    """What a user does to train without the checkpoints that are there."""
    checkpoints: str | None = None
    """Where the checkpoints of a volume are under `dtjob run`; None: where the volume is mounted."""


NO_DEFAULTS = Defaults()


def image_of(job: Job, defaults: Defaults) -> str | None:
    """The image of the job's tasks: its own, else the one it began with, else today's default; None: there is none."""
    return job.spec.image or job.status.get("image") or defaults.image


def priority_class_of(job: Job, defaults: Defaults) -> str | None:
    """The PriorityClass of the job: its own, else the default; None: there is none."""
    return job.spec.scheduling.priority_class_name or defaults.pods.priority_class_name


def image_of_role(job: Job, role: Role, defaults: Defaults) -> str | None:
    """The image of this role's training containers: its template's, else the job's; None: there is none."""
    replica = job.spec.replica_specs.get(role)
    return (replica.training.image if replica else None) or image_of(job, defaults)


def lacks_image(job: Job, defaults: Defaults) -> bool:
    """Whether a pod of the job would have no image. A template may name one for its role."""
    roles = [role for role in Role if job.spec.replica_specs.get(role)]
    return not all(image_of_role(job, role, defaults) for role in roles)


def parse_label(text: str) -> tuple[str, str]:
    """`KEY=VALUE` as both. Raises ValueError on what is no label, and on labels that dtjob sets itself."""
    key, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"{text!r} is not KEY=VALUE; write for example team=vision")
    check_name(key)
    check_value(key, value)
    if key.rpartition("/")[0] == GROUP or key == labels.MANAGED_BY:
        raise ValueError(f"{key} belongs to dtjob, which finds its pods by such labels; choose another name")
    return key, value
