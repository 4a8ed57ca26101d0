"""The schema and the rules: all that an API server refuses, and what `dtjob validate` says of it."""
