"""`dtjob submit`: a script on this machine as a job of a cluster."""
