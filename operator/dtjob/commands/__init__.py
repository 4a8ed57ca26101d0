"""What each command of `dtjob` does, one file a command; `dtjob.cli.main` only reads the arguments."""
