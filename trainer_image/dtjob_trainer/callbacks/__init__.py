# SPDX-License-Identifier: Apache-2.0
"""Callbacks of Keras in the loops: how they are called, and what checkpoints keep of them."""
