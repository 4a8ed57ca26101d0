# SPDX-License-Identifier: Apache-2.0
"""Compiled models of Keras 3 and tf_keras as the loops use them: steps, losses, optimizers, variables."""
