"""The command line: arguments are read in `main.py`, each command has a file."""
