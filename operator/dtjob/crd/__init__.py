# SPDX-License-Identifier: Apache-2.0
"""The schema and the rules: all that an API server refuses, and what `dtjob validate` says of it."""
