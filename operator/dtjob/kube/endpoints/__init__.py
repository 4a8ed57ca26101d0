"""The operator's own endpoints, and what it asks of the supervisors."""
