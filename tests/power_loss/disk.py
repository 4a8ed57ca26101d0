# SPDX-License-Identifier: Apache-2.0
"""A disk in memory that knows what a power loss may take: what was written, and what was brought to the medium.

Files have a content now and a durable one, and so have directories. A power loss keeps what is durable, and any part of
the rest that its kind allows.
"""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

PAGE = 4096
"""Bytes that are written to the medium as a whole, or not."""
ROOT = 1
"""The number of the topmost directory."""


class Kind(StrEnum):
    """What holds the files, and so what a power loss may take."""

    JOURNALED = "journaled"
    """A local disk, as ext4 and xfs have it: changes of directories become durable in their order, and any fsync makes
    all of them durable that came before."""
    REORDERED = "reordered"
    """A local disk that does no more than POSIX promises: changes of directories become durable in any order. An fsync
    of a directory makes its own changes durable, and no other does."""
    NFS = "nfs"
    """A client of NFS dies: its server has all changes of directories, and the content of all files that were closed
    or brought to disk."""


@dataclass(frozen=True)
class Made:
    """A file or directory has begun to exist, without a name."""

    number: int
    is_directory: bool = False


@dataclass(frozen=True)
class Named:
    """Names in directories have changed, all at once: (directory, name, file), None for a name that is gone."""

    changes: tuple[tuple[int, str, int | None], ...]


@dataclass(frozen=True)
class Written:
    """Bytes of a file have changed."""

    number: int
    offset: int
    data: bytes


@dataclass(frozen=True)
class Resized:
    """A file has another size."""

    number: int
    size: int


@dataclass(frozen=True)
class Synced:
    """fsync or fdatasync of a file or directory has returned."""

    number: int


@dataclass(frozen=True)
class Closed:
    """A file was closed."""

    number: int


Change = Made | Named | Written | Resized | Synced | Closed


@dataclass
class File:
    """What processes read of a file, what is durable of it, and what came since then."""

    now: bytearray = field(default_factory=bytearray)
    durable: bytes = b""
    pending: list[Written | Resized] = field(default_factory=list)


@dataclass
class Directory:
    """The names that processes see, and the durable ones with the number of the change that made each so."""

    now: dict[str, int] = field(default_factory=dict)
    durable: dict[str, tuple[int, int | None]] = field(default_factory=dict)


class Disk:
    """Files and directories by their numbers."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.files: dict[int, File] = {}
        self.directories: dict[int, Directory] = {ROOT: Directory()}
        self._pending: dict[int, Named] = {}
        """Changes of names that are not durable, by their order."""
        self._count = 0

    def apply(self, change: Change) -> None:
        """Let `change` happen, as processes see it, and make durable what then is."""
        match change:
            case Made(number, is_directory):
                if is_directory:
                    self.directories[number] = Directory()
                else:
                    self.files[number] = File()
            case Named():
                self._name(change)
            case Written(number) | Resized(number):
                alter(self.files[number].now, change)
                self.files[number].pending.append(change)
            case Synced(number):
                self._sync(number)
            case Closed(number):
                if self.kind == Kind.NFS:
                    self._sync_content(number)

    def _name(self, change: Named) -> None:
        for directory, name, number in change.changes:
            if number is None:
                self.directories[directory].now.pop(name, None)
            else:
                self.directories[directory].now[name] = number
        self._count += 1
        self._pending[self._count] = change
        if self.kind == Kind.NFS:
            self._make_durable(self._pending)

    def _sync(self, number: int) -> None:
        if self.kind != Kind.REORDERED:
            self._make_durable(self._pending)
        if number in self.directories:
            own = [each for each, change in self._pending.items() if any(of == number for of, _, _ in change.changes)]
            self._make_durable(own)
        else:
            self._sync_content(number)

    def _sync_content(self, number: int) -> None:
        file = self.files[number]
        file.durable, file.pending = bytes(file.now), []

    def _make_durable(self, orders: Iterable[int]) -> None:
        """A change of a name that came before a durable one of the same name is no change any more."""
        for order in sorted(orders):
            for directory, name, number in self._pending.pop(order).changes:
                names = self.directories[directory].durable
                if names.get(name, (0, None))[0] < order:
                    names[name] = (order, number)

    def lose_power(self, chance: random.Random) -> "Disk":
        """The disk that a machine finds after a power loss now. This one is used up."""
        pending = sorted(self._pending)
        if self.kind == Kind.JOURNALED:
            self._make_durable(pending[: chance.randint(0, len(pending))])
        else:
            likely = chance.choice((0.0, 0.2, 0.5, 0.8, 1.0))
            self._make_durable([order for order in pending if chance.random() < likely])
        after = Disk(self.kind)
        for number, directory in self.directories.items():
            there = {name: file for name, (_, file) in directory.durable.items() if file is not None}
            after.directories[number] = Directory(there, {name: (0, file) for name, file in there.items()})
        for number, file in self.files.items():
            content = bytearray(file.durable)
            for change in _survivors(file.pending, chance):
                alter(content, change)
            after.files[number] = File(content, bytes(content))
        return after


def _survivors(pending: Sequence[Written | Resized], chance: random.Random) -> list[Written | Resized]:
    """Those changes of a file that were written back by themselves: none, all, the first ones, or any pages."""
    pages: list[Written | Resized] = []
    for change in pending:
        if isinstance(change, Resized):
            pages.append(change)
        else:
            for begin in range(0, len(change.data), PAGE):
                pages.append(Written(change.number, change.offset + begin, change.data[begin : begin + PAGE]))
    match chance.choice(("none", "all", "first", "any", "size")):
        case "none":
            return []
        case "all":
            return pages
        case "first":
            return pages[: chance.randint(0, len(pages))]
        case "any":
            return [page for page in pages if chance.random() < 0.5]
        case _:  # the size was written back, and zeros are read
            return [Written(page.number, page.offset, bytes(len(page.data))) if isinstance(page, Written) else page
                    for page in pages]  # fmt: skip


def alter(content: bytearray, change: Written | Resized) -> None:
    """Change the content of a file."""
    if isinstance(change, Resized):
        del content[change.size :]
        content.extend(bytes(change.size - len(content)))
    else:
        content.extend(bytes(max(0, change.offset - len(content))))
        content[change.offset : change.offset + len(change.data)] = change.data
