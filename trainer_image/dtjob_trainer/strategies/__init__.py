# SPDX-License-Identifier: Apache-2.0
"""A job's strategy as TensorFlow's object, and what TensorFlow's strategies lack."""
