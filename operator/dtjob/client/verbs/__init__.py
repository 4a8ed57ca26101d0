# SPDX-License-Identifier: Apache-2.0
"""What users do with jobs of a cluster, as functions. The command line prints what they return."""
