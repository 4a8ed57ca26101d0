# SPDX-License-Identifier: Apache-2.0
"""A quantity of Kubernetes as a number: 4, 500m, 16Gi."""

import re
from fractions import Fraction

_FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([numkMGTPE]|[KMGTPE]i)|[eE]([+-]?\d{1,3}))?")
SUFFIXES = {
    **{name: Fraction(10) ** power for name, power in zip("numkMGTPE", (-9, -6, -3, 3, 6, 9, 12, 15, 18), strict=True)},
    **{f"{name}i": Fraction(1024) ** power for power, name in enumerate("KMGTPE", 1)},
}
"""What each suffix stands for."""


def parse(text: str | int | float) -> Fraction:
    """The quantity as a number, without spaces around it. Raises ValueError on what is none."""
    found = _FORM.fullmatch(str(text).strip())
    if found is None:
        raise ValueError(f"{text!r} is no quantity; write for example 4, 500m or 16Gi")
    number, suffix, exponent = found.groups()
    return Fraction(number) * (SUFFIXES[suffix] if suffix else Fraction(10) ** int(exponent or 0))


def is_quantity(value: str | int | float) -> bool:
    """Whether it can be read as one."""
    return _FORM.fullmatch(str(value).strip()) is not None
