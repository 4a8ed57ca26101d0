"""Commands that change jobs of a cluster, and that bring something out of them."""
