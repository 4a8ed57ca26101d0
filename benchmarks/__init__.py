"""Measurements against TensorFlow alone; README.md says how they are run."""
