# SPDX-License-Identifier: Apache-2.0
"""Where `dtjob run` keeps its runs. In a file of its own, as the command line imports it before anything else."""

from pathlib import Path

WORK_DIRECTORY = Path(".dtjob")
"""Where no --work-dir says another."""
