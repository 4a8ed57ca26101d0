# SPDX-License-Identifier: Apache-2.0
"""What a program calls outside of `strategy.run`, where TensorFlow and tf_keras have errors under a strategy."""
