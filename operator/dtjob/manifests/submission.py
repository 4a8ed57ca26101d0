# SPDX-License-Identifier: Apache-2.0
"""What the command line says of a submission. Imports nothing that takes time."""

from dataclasses import dataclass
from pathlib import Path

from dtjob.manifests.script import Script


@dataclass(frozen=True)
class Submission:
    """What the command line says."""

    script: Script
    source: Path | None = None
    requirements: Path | None = None
    image: str | None = None
    claim: str | None = None
    queue: str | None = None
    namespace: str | None = None
    claim_size: str | None = None
