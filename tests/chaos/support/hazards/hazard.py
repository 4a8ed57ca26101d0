# SPDX-License-Identifier: Apache-2.0
"""A hazard: a function that does harm, and returns how the harm is undone."""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from tests.chaos.support.bed import Bed
from tests.chaos.support.sightings import Sightings
from tools.cluster.program import Program


@dataclass(frozen=True)
class Done:
    """What was done, in words. `undo` is called after `seconds`; None if nothing is to be undone."""

    what: str
    undo: Callable[[], None] | None = None
    seconds: float = 0.0


@dataclass(frozen=True)
class World:
    """What hazards act on. `chance` chooses victims and durations. `away` are the programs that a hazard has killed and
    will start again."""

    bed: Bed
    sightings: Sightings
    chance: Random
    away: list[Program] = field(default_factory=list)

    def take_away(self, program: Program) -> Callable[[], None]:
        """Send SIGKILL to a program. Returns the function that starts the program again."""
        program.kill()
        self.away.append(program)

        def start_again() -> None:
            self.away.remove(program)
            program.start_again()

        return start_again

    def revive(self) -> list[str]:
        """Start the programs that have ended by themselves, as a service manager does. For example, an API server ends
        if it loses etcd. Returns their names."""
        ended = [one for one in self.bed.programs() if one not in self.away and one.process.poll() is not None]
        for program in ended:
            program.start_again()
        return [program.name for program in ended]


@dataclass(frozen=True)
class Hazard:
    """`do` returns None if it finds nothing to harm. `holds` names a part of the cluster. Until the hazard is undone,
    no other hazard of this part begins. `weight` is how often it is chosen, compared with the others."""

    do: Callable[[World], Done | None]
    holds: str
    weight: float = 1.0

    @property
    def name(self) -> str:
        """The name of the function, in words."""
        return self.do.__name__.replace("_", " ")
