"""Events of Kubernetes: what is told, how often, and in which objects."""
