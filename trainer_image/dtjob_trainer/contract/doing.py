"""What a training process is in between two steps, as it tells its supervisor (docs/contract.md, key `doing`)."""

from __future__ import annotations

STEPPING = "step"
DATA = "data"
CALLBACKS = "callbacks"
VALIDATING = "validating"
SAVING = "saving"

NO_STALL = (VALIDATING, SAVING)
"""In these training stands still, and that is no stall however long it takes."""
IN_WORDS = {
    STEPPING: "in a step",
    DATA: "in its data function",
    CALLBACKS: "in a callback",
    VALIDATING: "validating",
    SAVING: "saving",
}
