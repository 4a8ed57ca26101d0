# SPDX-License-Identifier: Apache-2.0
"""A job on one machine: the same plan as in a cluster, with processes for pods."""

from pathlib import Path

WORK_DIRECTORY = Path(".dtjob")
"""Where `dtjob run` keeps its runs if no --work-dir says another folder."""
