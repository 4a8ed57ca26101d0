# SPDX-License-Identifier: Apache-2.0
"""What training writes for TensorBoard."""
