"""What `dtjob validate` says of a manifest that an API server refuses."""
