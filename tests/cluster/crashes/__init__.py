# SPDX-License-Identifier: Apache-2.0
"""Whole lives of jobs on a real API server, in each of which one thing fails."""
