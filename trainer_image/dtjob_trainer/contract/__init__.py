# SPDX-License-Identifier: Apache-2.0
"""What supervisor, training process and operator agree on (contract.md). Nothing here imports TensorFlow."""
