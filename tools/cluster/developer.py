# SPDX-License-Identifier: Apache-2.0
"""A cluster to play with: `make cluster` and `make cluster-down`.

python -m tools.cluster.developer up        # leaves two nodes running in the background, with the images that are built
python -m tools.cluster.developer down      # ends it; whatever the state, nothing of it is left
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tools import binaries, images
from tools.cluster.program import ProgramError
from tools.node import image_store, leftovers, packages
from tools.node.node import Node, directory, machine_lock
from tools.programs import NODE, cache

ROOT = Path(__file__).resolve().parents[2]


def log() -> Path:
    """What the background process says."""
    return cache() / "cluster.log"


def pid_file() -> Path:
    """The background process: its pid and when it started."""
    return cache() / "cluster.pid"


def keeper() -> int | None:
    """The background process where it runs."""
    try:
        pid, when = pid_file().read_text().split()
    except (OSError, ValueError):
        return None
    return int(pid) if leftovers.started(int(pid)) == when else None


def up() -> int:
    """Start the node in the background and say how to use it. Returns the exit code."""
    if not keeper():
        say("starting a cluster of two nodes ...")
        try:
            packages.ensure(say)
            binaries.find(NODE, say)
        except (packages.UnavailableError, binaries.BinariesError) as error:
            return complain(str(error))
        with log().open("w") as errors:
            command = [sys.executable, "-m", "tools.cluster.developer", "keep"]
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        assert process.stdout
        if process.stdout.readline() != b"ready\n":
            process.wait()
            return complain(log().read_text().strip())
    for line in instructions():
        say(line)
    return 0


def instructions() -> list[str]:
    """How to use the cluster that is up."""
    tools = [binaries.find(["kubectl"])["kubectl"], binaries.present("helm")]
    path = ":".join(str(tool.parent) for tool in tools if tool)
    held = [image.reference for image in images.IMAGES.values() if image.reference in image_store.contents()]
    there = f"{' and '.join(held)} on its nodes" if held else "no image of ours (`make images` before `make cluster`)"
    return [
        f"The cluster is up, with {there}. Claims get a volume by themselves.",
        "In this shell, point kubectl at it (and take the kubectl and helm that we built) with",
        f"  export KUBECONFIG={directory() / 'kubeconfig'} PATH={path}:$PATH",
        "Install the operator and start a job with",
        "  helm install dtjob helm/dtjob -n dtjob-system --create-namespace \\",
        "    --set image.repository=dtjob-operator,image.tag=dev,jobs.image=dtjob-trainer:dev",
        "  kubectl apply -f examples/digits.yaml && kubectl get dtjobs --watch",
        "Bring another image to it (a docker-archive, as `docker save` writes it) with",
        f"  for node in {directory()}/dtjob-node-*; do",
        "    ctr --address=$node/containerd.sock -n k8s.io images import FILE; done",
        "`make cluster-down` removes it.",
    ]


def keep() -> int:
    """The background process: a node until SIGTERM."""
    pid_file().write_text(f"{os.getpid()} {leftovers.started(os.getpid())}")
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(0))
    try:
        with Node(binaries.find(NODE)):
            sys.stdout.write("ready\n")
            sys.stdout.flush()
            while True:
                signal.pause()
    except (packages.UnavailableError, ProgramError, AssertionError) as error:
        return complain(str(error))
    finally:
        pid_file().unlink(missing_ok=True)


def down() -> int:
    """End the background process, and remove what a crash of it may have left. Returns the exit code."""
    pid = keeper()
    if pid:
        os.kill(pid, signal.SIGTERM)
        while keeper() == pid:
            time.sleep(0.05)
    elif not directory().exists():
        say("no cluster is up")
        return 0
    try:
        with contextlib.ExitStack() as undo:
            machine_lock(undo)
            leftovers.remove(directory())
    except packages.UnavailableError:
        return complain("the node that runs here belongs to a test run, and ends with it")
    say("the cluster is gone")
    return 0


def say(line: str) -> None:
    """For the developer."""
    print(line, flush=True)


def complain(line: str) -> int:
    """Why it did not work; the exit code for it."""
    print(line, file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    actions = {"up": up, "keep": keep, "down": down}
    if len(sys.argv) != 2 or sys.argv[1] not in actions:
        sys.exit(f"usage: python -m tools.cluster.developer {'|'.join(actions)}")
    sys.exit(actions[sys.argv[1]]())
