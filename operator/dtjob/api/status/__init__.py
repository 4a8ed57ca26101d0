"""A job's `status`, one block a file: models that read it, write it and describe it for `kubectl explain`."""
