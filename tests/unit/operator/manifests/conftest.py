# SPDX-License-Identifier: Apache-2.0
"""What is wrong with a manifest, as the command line says it."""

from tests.unit.operator.cli.conftest import dtjob, good, without_image

__all__ = ["dtjob", "good", "without_image"]
