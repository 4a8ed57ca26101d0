# SPDX-License-Identifier: Apache-2.0
"""The number of workers: the room for them, and how a group changes its size."""
