"""Calls to an API server."""
