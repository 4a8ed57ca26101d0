# SPDX-License-Identifier: Apache-2.0
"""Actions: all that a plan can ask for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from dtjob.objects.manifest import Manifest


@dataclass(frozen=True)
class Create:
    """Make this object. It exists already: success only where it is ours, of this attempt and not being deleted.

    A manifest is made when it is asked for, and not for each plan: 4,000 pods take half a second, and most plans of a
    job that waits for a quota make none. `role` is a pod's, empty for other objects. `again`: the job's
    pods had it, and it is missing.
    """

    kind: str
    name: str
    make: Callable[[], Manifest] = field(compare=False, repr=False)
    role: str = ""
    again: bool = False

    @classmethod
    def of(cls, manifest: Manifest, *, again: bool = False) -> "Create":
        """Make this very object."""
        return cls(manifest["kind"], manifest["metadata"]["name"], lambda: manifest, again=again)

    @property
    def manifest(self) -> Manifest:
        """The object. Made anew each time."""
        return self.make()


@dataclass(frozen=True)
class Delete:
    """Delete the object that has this uid, no other of its name. `why` is for the log and the event. `version` is the
    resourceVersion that it must still have, since what it says is why it goes; empty: any. `surplus`: the job as seen
    asks for no such object, and a newer version may."""

    kind: str
    name: str
    uid: str
    why: str
    version: str = ""
    surplus: bool = False

    @classmethod
    def of(cls, manifest: Manifest, why: str, *, surplus: bool = False) -> "Delete":
        """Delete this very object."""
        metadata = manifest["metadata"]
        return cls(manifest["kind"], metadata["name"], metadata["uid"], why, surplus=surplus)


@dataclass(frozen=True)
class StopServing:
    """Take from a pod the label that the job's Service selects, so that its host name points to its successor only."""

    name: str
    uid: str


@dataclass(frozen=True)
class Repair:
    """Put right what dtjob says of an object that is there, as last seen, and leave the rest of it. `field` is the
    first that differs, for the log and the event."""

    manifest: Manifest
    there: Manifest
    field: str

    @property
    def kind(self) -> str:
        """The object's kind, such as `Service`."""
        return str(self.manifest["kind"])

    @property
    def name(self) -> str:
        """The object's name."""
        return str(self.manifest["metadata"]["name"])


@dataclass(frozen=True)
class PatchWorkload:
    """Merge `body` into the Workload of Kueue with this uid, as it was at this version; with `status` into its status,
    which is apart from the rest. `why` is for the log."""

    name: str
    uid: str
    version: str
    body: Mapping[str, Any]
    status: bool
    why: str


@dataclass(frozen=True)
class Event:
    """A Kubernetes event on the job. `type` is Normal or Warning."""

    type: str
    reason: str
    message: str


Action = Create | Delete | StopServing | Repair | PatchWorkload


@dataclass(frozen=True)
class Plan:
    """What to do for one job now.

    `status` is the whole new status, None if it would not change. It is written before any action, so that a crash
    between two lines can only repeat what is safe to repeat; only a new job's first objects may come before
    (`order.py`). `only_counts`: it tells of counts alone, or is a first status that only says what pods wait for.
    `look_again_at` is when time alone can change the plan.
    `events_of` is the uid of a pod whose own events are to be read, for the status to say them. `unless_there` is to be
    made after that, if the cluster does not have it.
    """

    actions: tuple[Action, ...] = ()
    status: dict[str, Any] | None = None
    events: tuple[Event, ...] = ()
    look_again_at: datetime | None = None
    only_counts: bool = False
    events_of: str = ""
    unless_there: Create | None = None

    @property
    def may_wait(self) -> bool:
        """Whether the status may be left to a later plan: nothing else is to be done or emitted."""
        return self.only_counts and not self.actions and not self.events
