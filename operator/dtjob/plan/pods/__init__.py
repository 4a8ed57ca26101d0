"""Which pods and shared objects there should be now, and the calls that make or delete them."""
