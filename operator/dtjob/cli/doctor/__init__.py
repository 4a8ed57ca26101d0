# SPDX-License-Identifier: Apache-2.0
"""`dtjob doctor`: whether a cluster can run jobs, and what to do if it cannot."""
