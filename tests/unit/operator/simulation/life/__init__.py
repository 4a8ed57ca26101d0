# SPDX-License-Identifier: Apache-2.0
"""A life of jobs, as a Hypothesis state machine: what happens to pods, by people's hands and to the operator."""
