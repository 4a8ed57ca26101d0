# SPDX-License-Identifier: Apache-2.0
"""The manifest's `network`: ports, and who may reach them."""

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import Block


class Isolation(StrEnum):
    """Who may reach the job's pods."""

    JOB = "Job"
    NONE = "None"


Port = Annotated[int, Field(ge=1024, le=65535)]


class Network(Block):
    """Ports of the pods, and who may reach them."""

    port: Port = 2222
    """TensorFlow's gRPC port in every pod. Defaults to 2222."""
    status_port: Port = 2223
    """Port at which the trainer serves /status and /metrics. Used only if program is set. Defaults to 2223."""
    rendezvous_port: Port = 2224
    """Port at which the tasks agree on when training starts. Used only if program is set. Defaults to 2224."""
    data_port: Port = 2225
    """Port at which the chief hands out work to the data workers. Used only if replicaSpecs.data is set. Defaults to
    2225."""
    isolation: Isolation = Isolation.JOB
    """Job (the default): a NetworkPolicy lets only pods of this job reach TensorFlow's port, which has no
    authentication. The operator may reach statusPort. None: no NetworkPolicy is created."""
