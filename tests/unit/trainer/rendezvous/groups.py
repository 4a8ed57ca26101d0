# SPDX-License-Identifier: Apache-2.0
"""A group of tasks and their rendezvous, for the tests beside this file."""

from dtjob_trainer.rendezvous.messages import Answer, Phase, Registration
from dtjob_trainer.rendezvous.rendezvous import Rendezvous

GROUP = ("chief-0", "worker-0", "worker-1")


def registration(
    task: str, phase: Phase = "waiting", *, attempt: int = 0, incarnation: int = 0, generation: int = 0
) -> Registration:
    return Registration("uid", "hash", task, attempt, f"{task}/{attempt}", incarnation, phase, generation)


def mirrored() -> Rendezvous:
    return Rendezvous("uid", "hash", chief="chief-0", group=GROUP)


def parameter_server() -> Rendezvous:
    return Rendezvous("uid", "hash", chief="chief-0", group=["chief-0"], servers=["worker-0", "ps-0", "ps-1"])


def all_wait(rendezvous: Rendezvous, now: float = 0, incarnation: int = 0) -> list[Answer]:
    """Everybody registers in turn; then what each of them is answered."""
    registrations = [registration(task, incarnation=incarnation) for task in GROUP]
    for each in registrations:
        rendezvous.register(each, None, now)
    return [rendezvous.answer(each, now) for each in registrations]


def begun() -> Rendezvous:
    """The rendezvous of a group that has its first go."""
    rendezvous = mirrored()
    all_wait(rendezvous)
    return rendezvous
