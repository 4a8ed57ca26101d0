# SPDX-License-Identifier: Apache-2.0
"""The variables that name the two pipes between a supervisor and its training process (contract.md)."""

GO = "DTJOB_GO_FD"
"""The training process reads here that it may start TensorFlow, and that a peer is about to leave."""
PROGRESS = "DTJOB_PROGRESS_FD"
"""The training process writes its reports here, one JSON object a line."""
