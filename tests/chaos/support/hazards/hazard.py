# SPDX-License-Identifier: Apache-2.0
"""What a hazard is: a function that does it, and says how it is undone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.chaos.support.bed import Bed
from tests.chaos.support.sightings import Sightings
from tools.cluster.program import Program


@dataclass(frozen=True)
class Done:
    """What was done, in words; after so many seconds `undo` undoes it."""

    what: str
    undo: Callable[[], None] | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class World:
    """What hazards act on, and the chance that decides. `away` are the programs that a hazard keeps from running."""

    bed: Bed
    sightings: Sightings
    chance: Random
    away: list[Program] = field(default_factory=list)

    def take_away(self, program: Program) -> Callable[[], None]:
        """SIGKILL for a program; what is returned starts it again."""
        program.kill()
        self.away.append(program)

        def start_again() -> None:
            self.away.remove(program)
            program.start_again()

        return start_again

    def revive(self) -> list[str]:
        """Start what has ended by itself, as a node's service manager does: an API server ends without etcd. Returns
        the names."""
        ended = [one for one in self.bed.programs() if one not in self.away and one.process.poll() is not None]
        for program in ended:
            program.start_again()
        return [program.name for program in ended]


@dataclass(frozen=True)
class Hazard:
    """`do` returns None where there is nothing that it could happen to. `holds` is what no other hazard touches until
    it is undone. Of all hazards each happens by its `weight`."""

    do: Callable[[World], Done | None]
    holds: str
    weight: float = 1.0

    @property
    def name(self) -> str:
        """The name of the function, in words."""
        return self.do.__name__.replace("_", " ")
