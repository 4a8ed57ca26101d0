"""Clusters to test on: bare nodes, kind or an existing one, and the means to talk to them."""
