# SPDX-License-Identifier: Apache-2.0
"""The steps of an epoch of each model of `steps_per_second`: about half a second's on two cores. No TensorFlow."""

STEPS = {"small": 1000, "5m": 30, "resnet": 10, "resnet-512": 30}
ON_CPUS = ("small", "5m", "resnet")
"""Without those that only a GPU trains in that time."""
