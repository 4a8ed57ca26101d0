"""Commands that watch jobs of a cluster: list, status, logs, wait, events and top."""
