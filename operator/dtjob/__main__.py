# SPDX-License-Identifier: Apache-2.0
"""`python -m dtjob`: the same as the `dtjob` command."""

from dtjob.cli.main import main

main()
