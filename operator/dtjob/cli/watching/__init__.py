# SPDX-License-Identifier: Apache-2.0
"""Commands that watch jobs of a cluster: list, status, logs, wait, events and top."""
