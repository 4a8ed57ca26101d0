"""From a failed pod to a decision: its cause, the rules, the budget of restarts, and what is restarted."""
