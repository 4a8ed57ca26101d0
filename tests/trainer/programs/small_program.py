# SPDX-License-Identifier: Apache-2.0
"""Training processes without TensorFlow, for fast tests: they keep the contract's pipes and exit codes.

Run as `python3 small_program.py WHAT`; each function below that has no underscore is one WHAT.
"""

import faulthandler
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

TASK = f"{os.environ['DTJOB_ROLE']}-{os.environ['DTJOB_INDEX']}"
DIRECTORY = Path(os.environ["SMALL_PROGRAM_DIRECTORY"])
_go = os.fdopen(int(os.environ["DTJOB_GO_FD"]))


def _report(**keys: object) -> None:
    os.write(int(os.environ["DTJOB_PROGRESS_FD"]), (json.dumps(keys) + "\n").encode())


def _wait_for_go() -> int:
    line = _go.readline()
    if not line:
        os._exit(75)
    return int(json.loads(line)["generation"])


def _cluster() -> dict[str, list[str]]:
    value: dict[str, list[str]] = json.loads(Path(os.environ["DTJOB_CLUSTER_FILE"]).read_text())
    return value


def _address(role: str, index: int) -> tuple[str, int]:
    host, port = _cluster()[role][index].split(":")
    return host, int(port)


def _connected(listener: socket.socket) -> list[socket.socket]:
    """The chief's connections to every worker, a worker's to the chief."""
    if TASK == "chief-0":
        return [listener.accept()[0] for _ in _cluster()["worker"]]
    while True:
        try:
            return [socket.create_connection(_address("chief", 0))]
        except OSError:
            time.sleep(0.01)


def group() -> None:
    """A synchronous group: workers hold a connection to the chief; whoever loses one exits 75. The chief counts to 40.

    A file `hang-TASK` makes that task hang after go, as TensorFlow does while a peer is missing, until it is gone.
    """
    generation = _wait_for_go()
    _report(state="starting", seenGeneration=generation)
    while (DIRECTORY / f"hang-{TASK}").exists():
        time.sleep(0.02)
    listener = socket.create_server(_address(os.environ["DTJOB_ROLE"], int(os.environ["DTJOB_INDEX"])))
    peers = _connected(listener)
    counter = os.open(DIRECTORY / "step", os.O_RDWR | os.O_CREAT)
    step = int(os.pread(counter, 12, 0) or 0)
    while step < 40 or (DIRECTORY / "endless").exists():
        _report(state="training", step=step)
        readable, _, _ = select.select(peers, [], [], 0.02)
        for peer in readable:
            try:
                word = peer.recv(4)
            except OSError:
                word = b""
            if word == b"done":
                os._exit(0)
            os._exit(75)
        if TASK == "chief-0":
            step += 1
            # in place: write_text empties the file first, and a chief that is killed then leaves no step
            os.pwrite(counter, f"{step:012}".encode(), 0)
    for peer in peers:
        peer.sendall(b"done")


def saves_on_sigterm() -> None:
    """Trains until SIGTERM, then saves and exits 143."""

    def save(*_: object) -> None:
        _report(state="saving", checkpoint={"step": 7})
        (DIRECTORY / "saved").write_text("7")
        os._exit(143)

    signal.signal(signal.SIGTERM, save)
    _wait_for_go()
    _report(state="training", step=7)
    while True:
        signal.pause()


def ignores_sigterm() -> None:
    """Never ends by itself."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    _wait_for_go()
    _report(state="training", step=1)
    while True:
        time.sleep(60)


def leaves_processes() -> None:
    """Its first incarnation leaves processes behind (one in its group, one in a session of its own) and exits 75.

    It waits with that while the file `hold` is there.
    """
    _wait_for_go()
    if (DIRECTORY / "children").exists():
        return
    _report(state="training")
    while (DIRECTORY / "hold").exists():
        time.sleep(0.01)
    sleep = ["sleep", "1000"]
    children = [subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)]
    (DIRECTORY / "children").write_text(" ".join(str(child.pid) for child in children))
    os._exit(75)


def leaves_an_orphan() -> None:
    """Makes an orphan that ends soon, and goes on: whoever adopts the orphan must reap it."""
    _wait_for_go()
    shell = subprocess.run(
        ["sh", "-c", "sleep 0.2 >/dev/null & echo $!"], stdout=subprocess.PIPE, text=True, check=True
    )
    _report(state="training", orphan=int(shell.stdout))
    while True:
        time.sleep(60)


def loses_its_peers() -> None:
    """Exits 75 each time, without a step."""
    _wait_for_go()
    os._exit(75)


def exits() -> None:
    """Ends when there is a file `exit` and as that says: a code, or minus a signal's number."""
    _wait_for_go()
    _report(state="training", step=3, totalSteps=10, loss=0.5, metrics={"accuracy": 0.9})
    while not (DIRECTORY / "exit").exists():
        time.sleep(0.01)
    code = int((DIRECTORY / "exit").read_text())
    if code < 0:
        os.kill(os.getpid(), -code)
        time.sleep(60)
    sys.exit(code)


def never_steps() -> None:
    """Restores step 80, and fails when there is a file `fail` with the exit code."""
    _wait_for_go()
    _report(state="training", step=80, restoredStep=80)
    while not (DIRECTORY / "fail").exists():
        time.sleep(0.01)
    _report(state="failed", exception={"type": "KeyError", "message": "'a b'"})
    sys.exit(int((DIRECTORY / "fail").read_text()))


def stalls() -> None:
    """Counts to 20. A file `stall` names the task that then hangs in its data function; all others wait in a step.

    Files `rest-STATE`, each with seconds in it: before its second step it validates or saves for so long, before its
    first one it compiles.
    """
    faulthandler.enable()
    _wait_for_go()
    _report(state="training", step=0, restoredStep=0)
    for step in range(1, 21):
        for rest in sorted(DIRECTORY.glob("rest-*")):
            doing = rest.name.removeprefix("rest-")
            if step == (1 if doing == "compiling" else 2):
                _report(doing=doing)
                time.sleep(float(rest.read_text()))
                _report(doing="step")
        _report(step=step)
        time.sleep(0.01)
    if (DIRECTORY / "stall").exists():
        mine = (DIRECTORY / "stall").read_text() == TASK
        _report(doing="data" if mine else "step")
        _read_from_a_server_that_is_gone()


def _read_from_a_server_that_is_gone() -> None:
    while (DIRECTORY / "stall").exists():
        time.sleep(0.05)


def ps_job() -> None:
    """ParameterServer: ps and workers serve for ever; the chief trains and exits 75 when it loses its ps."""
    _wait_for_go()
    role, index = os.environ["DTJOB_ROLE"], int(os.environ["DTJOB_INDEX"])
    if role != "chief":
        listener = socket.create_server(_address(role, index))
        _report(state="serving")
        kept: list[socket.socket] = []
        while True:
            kept.append(listener.accept()[0])
    ps = socket.create_connection(_address("ps", 0))
    _report(state="training", step=1)
    while not (DIRECTORY / "finish").exists():
        readable, _, _ = select.select([ps], [], [], 0.02)
        if readable:
            os._exit(75)


def tells_of_preemption() -> None:
    """Exits 75 when it is told that a peer is preempted; exits 143 on SIGTERM, once the file `leave` is there."""
    leaving = False

    def leave(*_: object) -> None:
        nonlocal leaving
        leaving = True

    signal.signal(signal.SIGTERM, leave)
    generation = _wait_for_go()
    if generation > 1:
        _report(state="finished")
        return
    _report(state="training", step=1)
    while True:
        readable, _, _ = select.select([_go], [], [], 0.02)
        if readable:
            _report(heard=json.loads(_go.readline()))
            os._exit(75)
        if leaving and (DIRECTORY / "leave").exists():
            os._exit(143)


def chief_finishes_last() -> None:
    """The worker ends well at once; the chief does so when the file `finish` appears."""
    _wait_for_go()
    _report(state="training", step=1)
    while TASK == "chief-0" and not (DIRECTORY / "finish").exists():
        time.sleep(0.01)


def chief_finishes_first() -> None:
    """The worker loses its peers when the file `lose` appears; the chief ends well when `finish` does."""
    _wait_for_go()
    _report(state="training", step=1)
    file, code = ("finish", 0) if TASK == "chief-0" else ("lose", 75)
    while not (DIRECTORY / file).exists():
        time.sleep(0.01)
    os._exit(code)


if __name__ == "__main__":
    globals()[sys.argv[1]]()
