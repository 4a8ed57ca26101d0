# SPDX-License-Identifier: Apache-2.0
"""What every block of the status is, and the types of the values in it.

A block is never changed in place: `but` gives a changed copy. Fields that this version does not know are left out:
anybody may have written them, and the operator could not write a status that they make too large.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.alias_generators import to_camel

from dtjob import times
from dtjob.api.block import Described

LONGEST_NAME = 256
"""Characters of a name, such as that of a pod or of a metric."""
LONGEST_WORD = 1024
"""Characters of a reason: metav1.Condition's limit."""
LONGEST_MESSAGE = 4096
"""Characters of a message of ours. metav1.Condition takes 32768."""
LONGEST_SENTENCE = 200
"""Characters of a text of which a status holds several."""
LARGEST_WHOLE = 2**53
"""Whole numbers from here on are not the same to every reader of JSON."""
LONGEST_NUMBER = 64
"""Characters of a number that is written as text."""


class StatusBlock(Described):
    """A block of the status: camelCase names in JSON; fields that are not known are left out."""

    model_config = ConfigDict(
        extra="ignore",
        frozen=True,
        alias_generator=to_camel,
        populate_by_name=True,
        json_schema_extra={"additionalProperties": True},  # so that an older definition takes a newer operator's status
    )

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """The block itself, as it is never changed: pydantic copies a default that has no hash for each model."""
        return self

    def but(self, **changes: Any) -> Self:
        """A copy with these fields changed. The values are not validated: whoever decides them has the right types."""
        unknown = changes.keys() - type(self).__pydantic_fields__.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        copied = self.__copy__()
        copied.__dict__.update(changes)
        return copied

    def to_json(self) -> dict[str, Any]:
        """The block as it is written. What has its default is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def cut(text: str, longest: int) -> str:
    """The text with at most `longest` characters; an ellipsis ends one that was longer."""
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def whole(moment: datetime) -> datetime:
    """The moment to the second in UTC, as it will be read back."""
    return moment.astimezone(UTC).replace(microsecond=0)


def _of_our_days(moment: datetime) -> datetime:
    if not 1970 <= moment.year < 2200:
        raise ValueError("the year must be 1970 to 2199")
    return moment


def _below(limit: int) -> Callable[[int], int]:
    def check(count: int) -> int:
        if count >= limit:
            raise ValueError(f"the number must be less than {limit}")
        return count

    return check


def _cut_to(longest: int) -> Callable[[Any], Any]:
    return lambda text: cut(text, longest) if isinstance(text, str) else text


Name = Annotated[str, BeforeValidator(_cut_to(LONGEST_NAME)), Field(max_length=LONGEST_NAME)]
"""A name. Longer ones are cut."""
Word = Annotated[str, BeforeValidator(_cut_to(LONGEST_WORD)), Field(max_length=LONGEST_WORD)]
"""A reason, in one word. Longer ones are cut."""
Message = Annotated[str, BeforeValidator(_cut_to(LONGEST_MESSAGE)), Field(max_length=LONGEST_MESSAGE)]
"""A text for people. Longer ones are cut."""
Sentence = Annotated[str, BeforeValidator(_cut_to(LONGEST_SENTENCE)), Field(max_length=LONGEST_SENTENCE)]
"""A text for people in one sentence. Longer ones are cut."""
Int32 = Annotated[int, Field(json_schema_extra={"format": "int32"})]
Int64 = Annotated[int, Field(json_schema_extra={"format": "int64"})]
Count = Annotated[Int32, AfterValidator(_below(2**30))]
"""A whole number that grows. The API server takes twice as large ones, so a forged one may grow, too."""
Sum = Annotated[Int64, Field(ge=0), AfterValidator(_below(2**62))]
"""A whole number to which others are added, as `Count`."""
NumberText = Annotated[str, Field(max_length=LONGEST_NUMBER)]
"""A number that may have a fraction, as text: JSON's numbers are not the same to every reader."""
Time = Annotated[AwareDatetime, AfterValidator(_of_our_days), PlainSerializer(times.rfc3339, return_type=str)]
"""A moment, to the second. A forged one may be so far away that no duration can be added to it."""
Seconds = Annotated[
    float,
    Field(ge=0, lt=10**15, allow_inf_nan=False),  # more would have too many digits
    PlainSerializer(lambda value: f"{value:.2f}".rstrip("0").rstrip("."), return_type=str),
    WithJsonSchema({"type": "string", "maxLength": LONGEST_NUMBER}),
]
"""Seconds with two decimals: a number in Python, text in JSON."""
