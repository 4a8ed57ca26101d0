# SPDX-License-Identifier: Apache-2.0
"""What a job in Python raises."""

from __future__ import annotations


class JobFailed(Exception):
    """The job ended otherwise than it was waited for. The message says why."""
