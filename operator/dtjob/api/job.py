# SPDX-License-Identifier: Apache-2.0
"""The manifest: `DistributedTrainingJob`, put together from its blocks, which lie beside this file.

These pydantic models are the only definition of the manifest's fields. `dtjob.crd` makes the CRD's schema from them
(the descriptions are what `kubectl explain` prints), and its rules hold what no single field can say. A job that a
cluster stores is read leniently (`stored_job`); `dtjob validate` and the API server are strict.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, ValidationError

from dtjob.api import names
from dtjob.api.block import LONGEST_SECONDS, Block, OpenBlock, Seconds, without
from dtjob.api.spec.checkpoint import Checkpoint, Evaluation, TensorBoard
from dtjob.api.spec.elastic_policy import ElasticPolicy
from dtjob.api.spec.failure_policy import FailurePolicy
from dtjob.api.spec.network import Network
from dtjob.api.spec.program import Program
from dtjob.api.spec.replica_specs import ReplicaSpecs
from dtjob.api.spec.scheduling import Scheduling
from dtjob.api.spec.strategy import Strategy, StrategyOptions


class SuccessPolicy(StrEnum):
    """Whose exit 0 ends the job with success."""

    CHIEF = "Chief"
    ALL_WORKERS = "AllWorkers"


class CleanPodPolicy(StrEnum):
    """Which pods are deleted when the job has ended."""

    RUNNING = "Running"
    ALL = "All"
    NONE = "None"


GROUP, VERSION, API_VERSION = names.GROUP, names.VERSION, names.API_VERSION
KIND, PLURAL, MANAGED_BY_LABEL = names.KIND, names.PLURAL, names.MANAGED_BY_LABEL
CONTROLLER = f"{GROUP}/dtjob-controller"
"""What `spec.managedBy` calls this operator."""


def is_ours(spec: Mapping[str, Any]) -> bool:
    """Whether this operator runs the job with this `spec`, as plain JSON: also of a spec that cannot be read."""
    return spec.get("managedBy") in (None, CONTROLLER)


class Spec(Block):
    """Desired state of the job: what trains, with which tasks, and what happens when they fail."""

    strategy: Strategy
    """The tf.distribute strategy that trains."""
    image: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Container image of every task. If program is set, it is dtjob's trainer image or one built on it. If left out,
    the operator's default image is used; a job keeps the one that it started with."""
    program: Program | None = None
    """Program to run. If left out, the image's own command trains and finds TF_CONFIG in its environment."""
    replica_specs: ReplicaSpecs
    """Tasks of the job, by role: chief, worker, ps, data, evaluator."""
    strategy_options: StrategyOptions | None = None
    """Options of the strategy."""
    elastic_policy: ElasticPolicy | None = None
    """Lets the number of workers change while the job runs. Each change saves first and continues at that checkpoint
    with a new group. The number is fixed if left out."""
    checkpoint: Checkpoint | None = None
    """Where and how often training is saved. If left out, a restart begins again at step 0."""
    evaluation: Evaluation | None = None
    """What the evaluator does. If left out, it evaluates the latest checkpoint and keeps no model."""
    tensor_board: TensorBoard | None = None
    """What the chief writes for TensorBoard while it trains. Nothing is written if left out."""
    success_policy: SuccessPolicy = SuccessPolicy.CHIEF
    """Tasks whose exit code 0 makes the job succeed. Chief (the default): the chief, or worker 0 if there is no chief.
    AllWorkers: every worker, and the chief if there is one."""
    failure_policy: FailurePolicy = FailurePolicy.model_construct()
    """What happens when tasks fail."""
    suspend: bool = False
    """true: the job saves within checkpoint.saveTimeoutSeconds, and all its pods are deleted. false: it continues at
    that checkpoint. Restart counts stay as they are. Defaults to false."""
    active_deadline_seconds: Seconds | None = None
    """Seconds that the job may be active before it fails with reason DeadlineExceeded. Waiting for pods counts;
    suspension does not. A restart does not reset it. No limit if left out."""
    start_deadline_seconds: Seconds | None = None
    """Seconds within which all tasks that train must run, or the job fails with reason StartDeadlineExceeded. It starts
    anew after each suspension; restarts do not count. No limit if left out."""
    ttl_seconds_after_finished: Annotated[int, Field(ge=0, le=LONGEST_SECONDS)] | None = None
    """Seconds from the end of the job to its deletion, with all its pods, whether it succeeded or failed. An evaluator
    first finishes the last checkpoint. The job is kept if left out."""
    clean_pod_policy: CleanPodPolicy = CleanPodPolicy.RUNNING
    """Pods that are deleted when the job has ended. Running (the default): those that still run, such as parameter
    servers. All: all of them. None: none. The evaluator first finishes the last checkpoint, for which it has one
    hour."""
    scheduling: Scheduling = Scheduling.model_construct()
    """How the pods are placed."""
    network: Network = Network.model_construct()
    """Ports of the pods, and who may reach them."""
    managed_by: Annotated[str, Field(max_length=63)] | None = None
    """Controller that runs this job, as a domain-prefixed path. Example: kueue.x-k8s.io/multikueue. dtjob ignores the
    job if it names another controller. Defaults to training.dtjob.dev/dtjob-controller."""

    @property
    def is_ours(self) -> bool:
        """Whether this operator runs the job, and no other controller that `managedBy` names."""
        return is_ours({"managedBy": self.managed_by})


class Metadata(OpenBlock):
    """The Kubernetes metadata that dtjob reads."""

    name: str
    namespace: str = "default"
    uid: str = ""
    resource_version: str = ""
    generation: int = 0


class Job(Block):
    """One DistributedTrainingJob. `status` stays a plain dict: it is what `plan` last wrote."""

    api_version: str = API_VERSION
    kind: str = KIND
    metadata: Metadata
    spec: Spec
    status: dict[str, Any] = Field(default_factory=dict)


def stored_job(manifest: Mapping[str, Any]) -> Job:
    """The job of a stored manifest. Raises pydantic's ValidationError if a field that this version knows is wrong.

    Fields that it does not know are ignored. So an operator that is rolled back runs the jobs that a newer one let in.
    """
    try:
        return Job.model_validate(manifest)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        unknown = [detail["loc"] for detail in details if detail["type"] == "extra_forbidden"]
        if not unknown:
            raise
    return Job.model_validate(without(manifest, unknown))
