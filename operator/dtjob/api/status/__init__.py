# SPDX-License-Identifier: Apache-2.0
"""A job's `status`, one block a file: models that read it, write it and describe it for `kubectl explain`."""
