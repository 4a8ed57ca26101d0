# SPDX-License-Identifier: Apache-2.0
"""Processes of this machine: their commands, addresses, start, and what an earlier run left."""
