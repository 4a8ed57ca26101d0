# SPDX-License-Identifier: Apache-2.0
"""The block `replicaSpecs` of a job with so many tasks of each role."""

from collections.abc import Mapping
from typing import Any

SINGLE = ("chief", "evaluator")
"""Roles with one task, whose block has no number."""


def replica_specs(counts: Mapping[str, int], **each: Any) -> dict[str, Any]:
    """One block for each role in `counts`; `each` are fields that every block gets."""
    return {role: each if role in SINGLE else {"replicas": count, **each} for role, count in counts.items()}
