"""The pod of one task: its containers, environment, devices, security and place."""
