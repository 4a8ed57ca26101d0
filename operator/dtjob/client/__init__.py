"""A synchronous client of a cluster with dtjob: for the command line, and for programs in Python."""
