"""The manifest's `network`: ports, and who may reach them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from dtjob.api.block import UNSET_IN_CLUSTER, Block


class NetworkPolicyMode(StrEnum):
    """Who may reach the job's pods."""

    ISOLATED = "Isolated"
    NONE = "None"


Port = Annotated[int, Field(ge=1024, le=65535)]


class Network(Block):
    """Ports, and who may reach them."""

    port: Port = 2222
    """TensorFlow's gRPC port in every pod."""
    status_port: Annotated[Port, Field(json_schema_extra=UNSET_IN_CLUSTER)] = 2223
    """Port on which the supervisor serves /status and /metrics, with program only; 2223 where left out."""
    policy: NetworkPolicyMode = NetworkPolicyMode.ISOLATED
    """Isolated: a NetworkPolicy lets only pods of the same job reach TensorFlow's port, which has no authentication;
    the operator reaches the status port. None: no NetworkPolicy is made."""
