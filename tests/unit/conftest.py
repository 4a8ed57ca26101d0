"""The unit tier takes seconds, so that it is run after every change of a line."""

from __future__ import annotations

import gc

# Looking for garbage takes a tenth of this tier, which makes little that a reference count would not free.
gc.set_threshold(100_000, 50, 50)
