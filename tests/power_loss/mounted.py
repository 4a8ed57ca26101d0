# SPDX-License-Identifier: Apache-2.0
"""A mounted file system (FUSE) that records what all processes write, TensorFlow's C++ included, and loses power.

`MountedDisk` starts it as a process of its own: a file system of the process that uses it would stand still with it.
It needs Linux, root and /dev/fuse, and no package.
"""

import ctypes
import errno
import json
import os
import random
import select
import stat
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.power_loss.disk import (
    ROOT,
    Change,
    Closed,
    Disk,
    Kind,
    Made,
    Named,
    Resized,
    Synced,
    Written,
)

DEVICE = Path("/dev/fuse")
REPOSITORY = Path(__file__).resolve().parents[2]
MOST_WRITE = 1 << 20
"""Bytes of one request, which Linux limits to 256 pages."""
_IN, _OUT = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
_ATTRIBUTES = struct.Struct("<6Q10I")
BIG_WRITES, MAX_PAGES = 1 << 5, 1 << 22
LAZY = 2
"""MNT_DETACH."""


class NotMountedError(Exception):
    """This machine lets nobody mount a file system of its own."""


class MountedDisk:
    """A disk that is mounted at a directory. Use as a context manager."""

    def __init__(self, where: Path, kind: Kind) -> None:
        """Raises NotMountedError."""
        self.where = where
        where.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", __name__, str(where), kind.value]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=REPOSITORY, start_new_session=True
        )
        assert self._process.stdout is not None
        if self._process.stdout.readline() != "mounted\n":
            self._process.wait()
            raise NotMountedError(where)

    def __enter__(self) -> "MountedDisk":
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def changes(self) -> int:
        """How many changes were recorded since the disk was new, until power was lost for the first time."""
        return self._ask("changes")

    def lose(self, after: int, seed: int) -> None:
        """Be as after a power loss, which came after so many of the recorded changes. Can be called again.

        `seed` chooses what is left.
        """
        self._ask("lose", after, seed)

    def _ask(self, *words: str | int) -> int:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(words) + "\n")
        stdin.flush()
        return int(stdout.readline())


class _Refused(Exception):
    """A request that is answered with an error number."""

    def __init__(self, number: int) -> None:
        self.number = number


class _Server:
    """Answers the kernel's requests from a disk, and the commands of the tests."""

    def __init__(self, device: int, kind: Kind) -> None:
        self._device, self._kind = device, kind
        self._disk = Disk(kind)
        self._record: list[Change] = []
        """All changes from when the disk was new to the first power loss."""
        self._recording = True
        self._last = ROOT
        """The last number of a file that was given."""
        self._written: dict[int, int] = {}
        """When each file was changed last, in nanoseconds."""
        self._answers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._lookup, 3: lambda number, _: self._attributes_of(number), 4: self._set_attributes,
            9: self._make_directory, 10: self._unlink, 11: self._remove_directory, 12: self._rename, 13: self._link,
            14: self._open, 15: self._read, 16: self._write, 17: lambda *_: self._space(), 18: self._nothing,
            20: self._sync, 25: self._close, 26: self._begin_session, 27: self._open, 28: self._list,
            29: self._nothing, 30: self._sync, 34: self._nothing, 35: self._create, 45: self._rename,
        }  # fmt: skip

    def serve(self) -> None:
        """Answer until the tests close standard input, or the file system is unmounted."""
        commands = sys.stdin.buffer
        while True:
            ready, _, _ = select.select([self._device, commands], [], [])
            if self._device in ready:
                try:
                    self._answer(os.read(self._device, MOST_WRITE + 8192))
                except OSError as error:
                    if error.errno == errno.ENODEV:
                        return
                    if error.errno not in (errno.EINTR, errno.ENOENT, errno.EAGAIN):
                        raise
            elif commands in ready:
                line = commands.readline()
                if not line:
                    return
                name, *arguments = json.loads(line)
                print(getattr(self, name)(*arguments) or 0, flush=True)

    # commands of the tests

    def changes(self) -> int:
        return len(self._record)

    def lose(self, after: int, seed: int) -> None:
        self._recording = False
        self._replay(self._record[:after])
        self._replay(_making(self._disk.lose_power(random.Random(seed))))

    def _replay(self, changes: Iterable[Change]) -> None:
        """Numbers are new each time: the kernel knows nothing of the files."""
        self._disk = Disk(self._kind)
        numbers = {ROOT: ROOT}
        for change in changes:
            if isinstance(change, Made):
                self._last += 1
                numbers[change.number] = self._last
            self._disk.apply(_renumbered(change, numbers))

    # requests of the kernel

    def _answer(self, request: bytes) -> None:
        _, operation, unique, node, *_ = _IN.unpack_from(request)
        if operation in (2, 36, 38, 42):  # forget, interrupt, destroy
            return
        body, number = b"", 0
        try:
            if operation not in self._answers:
                raise _Refused(errno.ENOSYS)
            body = self._answers[operation](node, request[_IN.size :])
        except _Refused as refused:
            number = refused.number
        os.write(self._device, _OUT.pack(_OUT.size + len(body), -number, unique) + body)

    def _do(self, *changes: Change) -> None:
        for change in changes:
            if self._recording:
                self._record.append(change)
            self._disk.apply(change)
            if isinstance(change, Written | Resized | Made):
                self._written[change.number] = time.time_ns()

    def _begin_session(self, _: int, body: bytes) -> bytes:
        _, _, readahead, flags = struct.unpack_from("<4I", body)
        wanted = flags & (BIG_WRITES | MAX_PAGES)
        return struct.pack("<4I2H2I2HI7I", 7, 31, readahead, wanted, 16, 12, MOST_WRITE, 1, 256, 0, 0, *[0] * 7)

    def _nothing(self, _: int, __: bytes) -> bytes:
        return b""

    def _names(self, number: int) -> dict[str, int]:
        if number not in self._disk.directories:
            raise _Refused(errno.ENOENT if number not in self._disk.files else errno.ENOTDIR)
        return self._disk.directories[number].now

    def _find(self, directory: int, name: str) -> int:
        try:
            return self._names(directory)[name]
        except KeyError:
            raise _Refused(errno.ENOENT) from None

    def _attributes(self, number: int) -> bytes:
        if number in self._disk.directories:
            mode, size = stat.S_IFDIR | 0o777, 0
        elif number in self._disk.files:
            mode, size = stat.S_IFREG | 0o666, len(self._disk.files[number].now)
        else:
            raise _Refused(errno.ESTALE)
        seconds, nanoseconds = divmod(self._written.get(number, 0), 10**9)
        times = (seconds,) * 3 + (nanoseconds,) * 3
        return _ATTRIBUTES.pack(number, size, -(-size // 512), *times, mode, 1, 0, 0, 0, 4096, 0)

    def _attributes_of(self, number: int) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self._attributes(number)

    def _entry(self, number: int) -> bytes:
        return struct.pack("<4Q2I", number, 0, 0, 0, 0, 0) + self._attributes(number)

    def _lookup(self, directory: int, body: bytes) -> bytes:
        return self._entry(self._find(directory, _text(body)))

    def _set_attributes(self, number: int, body: bytes) -> bytes:
        valid, _, _, size, _, _, mtime = struct.unpack_from("<IIQQQQQ", body)
        (nanoseconds,) = struct.unpack_from("<I", body, 60)
        if valid & 8:
            self._do(Resized(number, size))
        if valid & 32 and not valid & 256:
            self._written[number] = mtime * 10**9 + nanoseconds
        return self._attributes_of(number)

    def _make(self, directory: int, name: str, is_directory: bool) -> int:
        if name in self._names(directory):
            raise _Refused(errno.EEXIST)
        self._last += 1
        self._do(Made(self._last, is_directory), Named(((directory, name, self._last),)))
        return self._last

    def _make_directory(self, directory: int, body: bytes) -> bytes:
        return self._entry(self._make(directory, _text(body[8:]), is_directory=True))

    def _create(self, directory: int, body: bytes) -> bytes:
        return self._entry(self._make(directory, _text(body[16:]), is_directory=False)) + struct.pack("<QII", 0, 0, 0)

    def _link(self, directory: int, body: bytes) -> bytes:
        (number,), name = struct.unpack_from("<Q", body), _text(body[8:])
        if name in self._names(directory):
            raise _Refused(errno.EEXIST)
        self._do(Named(((directory, name, number),)))
        return self._entry(number)

    def _unlink(self, directory: int, body: bytes) -> bytes:
        if self._find(directory, _text(body)) in self._disk.directories:
            raise _Refused(errno.EISDIR)
        self._do(Named(((directory, _text(body), None),)))
        return b""

    def _remove_directory(self, directory: int, body: bytes) -> bytes:
        if self._names(self._find(directory, _text(body))):
            raise _Refused(errno.ENOTEMPTY)
        self._do(Named(((directory, _text(body), None),)))
        return b""

    def _rename(self, directory: int, body: bytes) -> bytes:
        (to,) = struct.unpack_from("<Q", body)
        # The fields before the names have zeros at their end.
        old, new = (each.decode() for each in body.rstrip(b"\0").rsplit(b"\0", 2)[-2:])
        number, there = self._find(directory, old), self._names(to).get(new)
        if there is not None and there in self._disk.directories and self._names(there):
            raise _Refused(errno.ENOTEMPTY)
        if there != number:
            self._do(Named(((directory, old, None), (to, new, number))))
        return b""

    def _open(self, number: int, _: bytes) -> bytes:
        self._attributes(number)
        return struct.pack("<QII", 0, 0, 0)

    def _file(self, number: int) -> bytearray:
        if number not in self._disk.files:
            raise _Refused(errno.ESTALE)
        return self._disk.files[number].now

    def _read(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        return bytes(self._file(number)[offset : offset + size])

    def _write(self, number: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        self._file(number)
        self._do(Written(number, offset, body[40 : 40 + size]))
        return struct.pack("<II", size, 0)

    def _sync(self, number: int, _: bytes) -> bytes:
        self._attributes(number)
        self._do(Synced(number))
        return b""

    def _close(self, number: int, _: bytes) -> bytes:
        if number in self._disk.files:
            self._do(Closed(number))
        return b""

    def _list(self, directory: int, body: bytes) -> bytes:
        _, offset, size = struct.unpack_from("<QQI", body)
        listed = b""
        for position, (name, number) in enumerate([*self._names(directory).items()][offset:], offset + 1):
            kind = stat.S_IFDIR if number in self._disk.directories else stat.S_IFREG
            encoded = name.encode()
            entry = struct.pack("<QQII", number, position, len(encoded), kind >> 12) + encoded
            entry += bytes(-len(entry) % 8)
            if len(listed) + len(entry) > size:
                break
            listed += entry
        return listed

    def _space(self) -> bytes:
        return struct.pack("<5Q4I6I", 1 << 30, 1 << 29, 1 << 29, 1 << 30, 1 << 29, 4096, 255, 4096, *[0] * 7)


def _text(body: bytes) -> str:
    return body[: body.index(b"\0")].decode()


def _renumbered(change: Change, numbers: Mapping[int, int]) -> Change:
    if isinstance(change, Named):
        changes = change.changes
        return Named(tuple((numbers[of], name, None if to is None else numbers[to]) for of, name, to in changes))
    return replace(change, number=numbers[change.number])


def _making(disk: Disk) -> list[Change]:
    """The changes that make what can be reached on `disk`."""
    changes: list[Change] = []
    left, made = [ROOT], {ROOT}
    while left:
        directory = left.pop()
        for name, number in disk.directories[directory].now.items():
            if number not in made:
                made.add(number)
                changes.append(Made(number, number in disk.directories))
                if number in disk.directories:
                    left.append(number)
                else:
                    changes.append(Written(number, 0, bytes(disk.files[number].now)))
            changes.append(Named(((directory, name, number),)))
    return changes


def main(where: str, kind: str) -> None:
    """Mount at `where`, serve, and unmount."""
    libc: Any = ctypes.CDLL(None, use_errno=True)
    try:
        device = os.open(DEVICE, os.O_RDWR)
    except OSError:
        return
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0,allow_other,max_read={MOST_WRITE}".encode()
    if libc.mount(b"dtjob-power", where.encode(), b"fuse.dtjob-power", 0, options):
        return
    print("mounted", flush=True)
    try:
        _Server(device, Kind(kind)).serve()
    finally:
        libc.umount2(where.encode(), LAZY)


if __name__ == "__main__":
    main(*sys.argv[1:])
