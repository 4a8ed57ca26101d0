# SPDX-License-Identifier: Apache-2.0
"""`dtjob explain`: what a job would be in a cluster."""
