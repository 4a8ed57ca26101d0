"""`python -m dtjob`: the same as the `dtjob` command."""

from dtjob.cli import main

main()
