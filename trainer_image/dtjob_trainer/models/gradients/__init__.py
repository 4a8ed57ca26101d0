"""How the gradients of several replicas become those that one device has."""
