"""dtjob: a Kubernetes operator for distributed TensorFlow training."""

__version__ = "0.1.0"
