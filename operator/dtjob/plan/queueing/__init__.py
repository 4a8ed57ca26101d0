# SPDX-License-Identifier: Apache-2.0
"""The job's Workload in a queue of Kueue, and whether the job may have pods now."""
