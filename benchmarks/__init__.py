# SPDX-License-Identifier: Apache-2.0
"""Measurements against TensorFlow alone; README.md says how they are run."""
