# SPDX-License-Identifier: Apache-2.0
"""What a training process does between two steps: the key `doing` of its reports (contract.md)."""

STEPPING = "step"
DATA = "data"
CALLBACKS = "callbacks"
VALIDATING = "validating"
SAVING = "saving"

NO_STALL = (VALIDATING, SAVING)
"""While a process does one of these, it makes no steps. That is not a stall, however long it takes."""
IN_WORDS = {
    STEPPING: "in a step",
    DATA: "in its data function",
    CALLBACKS: "in a callback",
    VALIDATING: "validating",
    SAVING: "saving",
}
