"""`dtjob explain`: what a job would be in a cluster."""
