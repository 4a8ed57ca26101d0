# SPDX-License-Identifier: Apache-2.0
"""Decides when the members of a group may start: not before all are there. No TensorFlow."""
