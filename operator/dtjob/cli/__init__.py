# SPDX-License-Identifier: Apache-2.0
"""The command line: arguments are read in `main.py`, each command has a file."""
