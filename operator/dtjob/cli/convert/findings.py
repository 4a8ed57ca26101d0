# SPDX-License-Identifier: Apache-2.0
"""What a conversion says beside its result: a line for each field without a home or with another meaning."""

from dataclasses import dataclass, field


class CannotConvert(Exception):
    """The TFJob has no counterpart. The message names the field and the reason."""


@dataclass(frozen=True)
class Finding:
    """One line about a field of the TFJob. A warning says that something of meaning is lost or changes."""

    path: str
    message: str
    warning: bool

    def said_of(self, where: str) -> str:
        """The line, for a TFJob that was found there."""
        return f"{'warning' if self.warning else 'note'}: {where}: {self.path}: {self.message}"


@dataclass
class Findings:
    """The lines of one conversion, in the order in which they are found."""

    found: list[Finding] = field(default_factory=list)

    def warn(self, path: str, message: str) -> None:
        """Add a line about what is lost or changes its meaning."""
        self._add(Finding(path, message, warning=True))

    def note(self, path: str, message: str) -> None:
        """Add a line about what keeps its meaning in another form."""
        self._add(Finding(path, message, warning=False))

    def _add(self, finding: Finding) -> None:
        if finding not in self.found:
            self.found.append(finding)
