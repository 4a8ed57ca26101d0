"""What is listed and watched: kopf for jobs, one informer for every other kind."""
