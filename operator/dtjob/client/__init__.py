# SPDX-License-Identifier: Apache-2.0
"""A synchronous client of a cluster with dtjob: for the command line, and for programs in Python."""
