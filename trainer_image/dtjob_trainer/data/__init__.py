"""Which examples a task trains on, in which order, from whatever the program has them in."""
