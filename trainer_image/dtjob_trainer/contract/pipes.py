"""The variables that name the two pipes between a supervisor and its training process (docs/contract.md)."""

from __future__ import annotations

GO = "DTJOB_GO_FD"
"""Where the training process reads that it may start TensorFlow, and of peers that are about to leave."""
PROGRESS = "DTJOB_PROGRESS_FD"
"""Where it writes how training goes, a JSON object a line."""
IMPORTED = "imported"
"""A key of these objects that is not part of the status: a module that the next training process will need as well."""
