"""What is raised where a strategy cannot be had as asked."""


class StrategyError(ValueError):
    """The strategy or one of its options cannot be had here; the message names the field of the manifest."""
