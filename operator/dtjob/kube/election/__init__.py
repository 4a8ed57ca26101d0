"""Leader election, and whether the process is alive."""
