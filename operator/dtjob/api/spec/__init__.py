"""The blocks of the spec, one in a file."""
