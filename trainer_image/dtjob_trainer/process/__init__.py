"""The training process among its peers: its signals, its reports and its end."""
