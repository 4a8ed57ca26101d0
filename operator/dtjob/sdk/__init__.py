"""The Python client: jobs as objects, here or in a cluster."""
