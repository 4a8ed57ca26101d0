# SPDX-License-Identifier: Apache-2.0
"""PID 1 of a training container. It keeps one training process running and serves its status. No TensorFlow."""
