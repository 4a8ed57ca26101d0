# SPDX-License-Identifier: Apache-2.0
"""From a failed pod to a decision: its cause, the rules, the budget of restarts, and what is restarted."""
