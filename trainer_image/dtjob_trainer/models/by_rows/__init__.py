# SPDX-License-Identifier: Apache-2.0
"""How a loss depends on the rows of its batch, and its value over the rows of all replicas."""
