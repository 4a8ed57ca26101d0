"""What each command of `dtjob` does, one file a command; `dtjob.cli` only reads the arguments."""
