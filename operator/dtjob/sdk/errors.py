# SPDX-License-Identifier: Apache-2.0
"""What a job in Python raises."""


class JobFailed(Exception):
    """The job ended in another state than the one waited for. The message says why."""
