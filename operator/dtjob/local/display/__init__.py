# SPDX-License-Identifier: Apache-2.0
"""What a local run shows: a snapshot of it, told as lines, as a live view and as a summary."""
