"""One policy a file: what happens when a pod fails, waits, succeeds or is left over. Pure."""
