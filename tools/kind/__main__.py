# SPDX-License-Identifier: Apache-2.0
"""A kind cluster to play with, and commands that find Docker.

python -m tools.kind up             # `make kind`: Docker, a cluster of one node, and both images on it
python -m tools.kind down           # `make kind-down`: removes the cluster, and ends the Docker that was started here
python -m tools.kind exec COMMAND   # runs a command with that Docker and both images, such as the tests
"""

import os
import subprocess
import sys
from pathlib import Path

from tools import binaries, images
from tools.cluster import kind
from tools.kind import docker, node_image
from tools.node.packages import UnavailableError

CLUSTER = "dtjob"


def up() -> int:
    """Start the cluster and say how to use it. Returns the exit code."""
    programs = prepare()
    if CLUSTER not in kind.call(programs["kind"], "get", "clusters").split():
        built = build()
        say("starting kind's cluster ...")
        kind.create(programs["kind"], CLUSTER, kubeconfig())
        for each in built.values():
            kind.call(programs["kind"], "load", "image-archive", each.archive, "--name", CLUSTER)
    for line in instructions():
        say(line)
    return 0


def prepare() -> dict[str, Path]:
    """Let this process find Docker and the programs, and return where the programs are. Raises UnavailableError or
    BinariesError."""
    docker.ensure(say)
    docker.weigh(1 + kind.WORKERS)
    programs = kind.programs(say) | binaries.find(["helm"], say)
    directory = docker.home() / "bin"
    directory.mkdir(parents=True, exist_ok=True)
    for name, path in programs.items():
        docker.link(directory / name, path)
    os.environ["PATH"] = f"{directory}:{os.environ['PATH']}"
    return programs


def build() -> dict[str, images.Image]:
    """Build the images that a new cluster needs: of the operator, of the trainer, and of kind's nodes.

    Nodes have kind's own image if a registry answers and no variable names a version of Kubernetes. Raises
    BinariesError or ImagesError.
    """
    engine = images.Engine("docker", ("docker",))
    chosen = os.environ.get("DTJOB_KUBERNETES")
    if not os.environ.get(kind.IMAGE) and (chosen or not engine.has(images.IMAGES["operator"].base)):
        os.environ[kind.IMAGE] = node_image.ensure(engine, say)
    return images.build(say=say)


def instructions() -> list[str]:
    """How to use the cluster that is up."""
    host = f"DOCKER_HOST={os.environ['DOCKER_HOST']} " if "DOCKER_HOST" in os.environ else ""
    return [
        f"kind's cluster {CLUSTER} is up, with dtjob-operator:dev and dtjob-trainer:dev on its node.",
        "In this shell, use it and its kubectl, helm and kind with",
        f"  export {host}KUBECONFIG={kubeconfig()} PATH={docker.home() / 'bin'}:$PATH",
        "Install the operator and start a job with",
        "  helm install dtjob helm/dtjob -n dtjob-system --create-namespace \\",
        "    --set image.tag=dev,jobs.image=dtjob-trainer:dev --wait",
        "  kubectl apply -f examples/digits.yaml && kubectl get dtjobs --watch",
        "`make kind-down` removes it.",
    ]


def down() -> int:
    """Delete the cluster and end the Docker that was started here. Returns the exit code."""
    if not docker.answers():
        os.environ.update(docker.ours())
    if docker.answers():
        kind.call(kind.programs(say)["kind"], "delete", "cluster", "--name", CLUSTER, "--kubeconfig", kubeconfig())
    docker.stop()
    say("kind's cluster is gone")
    return 0


def execute(command: list[str]) -> int:
    """Run a command that finds Docker, kind, kubectl, helm and the images. A Docker that was not there before ends with
    it. Returns the command's exit code."""
    before = docker.running()
    try:
        prepare()
        build()
        return subprocess.run(command).returncode
    finally:
        if not before:
            docker.stop()


def kubeconfig() -> Path:
    """The administrator's file of the cluster."""
    return docker.home() / "kubeconfig"


def say(line: str) -> None:
    """For the developer."""
    print(line, file=sys.stderr, flush=True)


def main(arguments: list[str]) -> int:
    """Do what the arguments ask for. Returns the exit code."""
    try:
        match arguments:
            case ["up"]:
                return up()
            case ["down"]:
                return down()
            case ["exec", *command] if command:
                return execute(command)
    except (UnavailableError, binaries.BinariesError, images.ImagesError) as error:
        say(str(error))
        return 1
    say("usage: python -m tools.kind up|down|exec COMMAND")
    return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
