# SPDX-License-Identifier: Apache-2.0
"""A job on one machine: the same plan as in a cluster, with processes for pods."""
