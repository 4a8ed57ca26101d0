# SPDX-License-Identifier: Apache-2.0
"""Messages that explain the state of a job: why pods wait, checkpoints, unreachable supervisors."""
