"""The manifest: `DistributedTrainingJob`, put together from its blocks, which lie beside this file.

These pydantic models are the only definition of the manifest's fields. `dtjob.crd` makes the CRD's schema from them
(the descriptions are what `kubectl explain` prints), and its rules hold what no single field can say.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dtjob.api.block import UNSET_IN_CLUSTER, Block, OpenBlock
from dtjob.api.checkpoint import Checkpoint, Evaluation, TensorBoard
from dtjob.api.failure_policy import FailurePolicy
from dtjob.api.network import Network
from dtjob.api.program import Program
from dtjob.api.replicas import Replicas
from dtjob.api.run_policy import RunPolicy
from dtjob.api.scheduling import Scheduling
from dtjob.api.strategy import Strategy, StrategyOptions
from dtjob.api.success_policy import SuccessPolicy

GROUP = "training.dtjob.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"
KIND = "DistributedTrainingJob"
PLURAL = "distributedtrainingjobs"
CONTROLLER = f"{GROUP}/dtjob-controller"
"""What `spec.managedBy` calls this operator."""
MANAGED_BY_LABEL = "app.kubernetes.io/managed-by"
"""On everything that dtjob makes, so in no template."""


class Spec(Block):
    """What to train, and on what."""

    strategy: Strategy
    """The tf.distribute strategy that trains."""
    image: Annotated[str, Field(min_length=1, max_length=1024)] | None = None
    """Container image of every task: dtjob's trainer image or one built on it; with program left out, any image. Left
    out: the default image of the operator, if it has one; the job keeps the one it began with."""
    program: Program | None = None
    """The program to run. Left out: the image's own command trains, and TF_CONFIG is there for it."""
    replicas: Replicas
    """The tasks, by role: chief, worker, ps, evaluator."""
    strategy_options: StrategyOptions | None = None
    """Options of the strategy."""
    checkpoint: Checkpoint | None = None
    """Where and how often training is saved. Left out: a restart begins again at step 0."""
    evaluation: Evaluation | None = None
    """What the evaluator does. Left out: it evaluates the latest checkpoint and keeps no model."""
    tensor_board: TensorBoard | None = None
    """What the chief writes for TensorBoard while it trains. Left out: nothing."""
    success_policy: SuccessPolicy | None = None
    """Whose exit 0 ends the job well: Chief (the chief's, or worker 0's where there is no chief) or AllWorkers (that of
    every worker, and of the chief where there is one). Chief where left out."""
    failure_policy: FailurePolicy = FailurePolicy()
    """What happens when tasks fail."""
    run_policy: RunPolicy = RunPolicy()
    """The life of the job as a whole."""
    scheduling: Scheduling = Scheduling()
    """How the pods are placed."""
    network: Network = Network()
    """Ports, and who may reach them."""
    suspend: Annotated[bool, Field(json_schema_extra=UNSET_IN_CLUSTER)] = False
    """true: the job saves, within checkpoint.saveTimeoutSeconds, and gives all its pods back; false: it goes on at that
    checkpoint. As in a Job; the budget of restarts stays as it is. false where left out."""
    managed_by: Annotated[str, Field(max_length=63)] | None = None
    """Who runs this job, as in a Job: a domain-prefixed path such as kueue.x-k8s.io/multikueue. dtjob leaves a job
    alone that is another's. Left out, or training.dtjob.dev/dtjob-controller: dtjob does."""


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
