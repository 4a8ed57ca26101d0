# SPDX-License-Identifier: Apache-2.0
"""What users are told, and what only that depends on: why pods wait, checkpoints, unreachable supervisors."""
