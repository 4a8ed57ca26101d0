# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.run: whose failure an end is, and how it is told."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from dtjob_trainer.run import code_of_exit
from tests.unit.trainer.raised import AS_TENSORFLOW

RUNS = """
import sys, types
from dtjob_trainer import imports, run
imports.of_a_training_process = lambda **_: None
run._enter_strategy = lambda *_: None
sys.modules["dtjob_trainer.checkpoint.done"] = done = types.ModuleType("done")
done.mark_done = lambda *_: print("DONE", flush=True)
run.main(sys.argv[1:])
"""
"""A training process without TensorFlow, which prints DONE where it would leave the mark."""


@dataclass(frozen=True)
class End:
    """How a training process has ended."""

    code: int
    said: list[str]
    """The lines of its standard output."""
    errors: str
    states: list[str]
    """What it has reported, one after the other."""


class Run:
    """A training process that runs `program`, as the chief task's or another."""

    def __init__(self, directory: Path, program: str, entrypoint: str = "program.py", **variables: str) -> None:
        (directory / "program.py").write_text(dedent(program))
        (directory / "cluster.json").write_text(json.dumps({"chief": ["127.0.0.1:1"], "worker": ["127.0.0.1:2"]}))
        self._progress, theirs = os.pipe()
        environ = {name: value for name, value in os.environ.items() if not name.startswith("DTJOB_")} | {
            "DTJOB_ROLE": "chief", "DTJOB_PROGRESS_FD": str(theirs), "DTJOB_CHECKPOINT": '{"directory": "/nowhere"}',
            "DTJOB_CLUSTER_FILE": str(directory / "cluster.json"), **variables,
        }  # fmt: skip
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUNS, entrypoint],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ, pass_fds=[theirs], cwd=directory,
        )  # fmt: skip
        os.close(theirs)

    def told_to_end(self, once: str) -> End:
        """Send it SIGTERM once it has said this line, its first; its end."""
        assert self.process.stdout
        assert self.process.stdout.readline() == f"{once}\n"
        self.process.send_signal(signal.SIGTERM)
        return self.end()

    def end(self) -> End:
        """Wait for its end."""
        out, errors = self.process.communicate(timeout=20)
        with os.fdopen(self._progress) as pipe:
            reports: list[dict[str, Any]] = [json.loads(line) for line in pipe]
        states = [str(report["state"]) for report in reports if "state" in report]
        return End(self.process.returncode, out.splitlines(), errors, states)


@pytest.mark.parametrize(("code", "number", "said"), [(None, 0, ""), (0, 0, ""), (3, 3, ""), ("no", 1, "no\n")])
def test_a_program_may_leave_by_sys_exit(
    capsys: pytest.CaptureFixture[str], code: int | str | None, number: int, said: str
) -> None:
    assert code_of_exit(SystemExit(code)) == number
    assert capsys.readouterr().err == said


def test_without_an_entrypoint_the_usage_is_printed() -> None:
    result = subprocess.run([sys.executable, "-m", "dtjob_trainer.run"], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (2, "usage: python3 -m dtjob_trainer.run ENTRYPOINT [ARGS…]\n")


def test_an_entrypoint_that_is_not_a_file_is_named(tmp_path: Path) -> None:
    missing = Run(tmp_path, "", entrypoint="digits.py").end()
    assert (missing.code, missing.states) == (1, ["starting", "failed"])
    assert f"program.entrypoint 'digits.py' is not a file in {tmp_path}" in missing.errors


@pytest.mark.parametrize(
    ("leaves", "code"),
    [("pass", 0), ("sys.exit(0)", 0), ("sys.exit('no')", 1), ("sys.exit(3)", 3), ("raise ValueError('no')", 1)],
)
def test_the_exit_of_a_forked_child_is_not_that_of_the_program(tmp_path: Path, leaves: str, code: int) -> None:
    program = f"""
        import os, sys
        child = os.fork()
        if child == 0:
            print("child", flush=True)
            {leaves}
        else:
            ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            print("ended with", ended)
        """
    end = Run(tmp_path, program).end()
    assert (end.code, end.said, end.states) == (0, ["child", f"ended with {code}", "DONE"], ["starting", "finished"])
    assert ("no" in end.errors) == (code == 1)


UPLOADS = """
    import atexit, multiprocessing, os, sys, threading, time
    from concurrent.futures import ThreadPoolExecutor

    def upload(name):
        time.sleep(0.2)
        os.write(1, (name + "\\n").encode())

    atexit.register(upload, "at exit")
    threading.Thread(target=upload, args=("thread",)).start()
    ThreadPoolExecutor(1).submit(upload, "pool")
    multiprocessing.get_context("fork").Process(target=upload, args=("process",)).start()
    """


@pytest.mark.parametrize(
    ("leaves", "code", "mark", "states"),
    [
        ("pass", 0, ["DONE"], ["starting", "finished"]),
        ("sys.exit()", 0, ["DONE"], ["starting", "finished"]),
        ("sys.exit(3)", 3, [], ["starting"]),
        ("raise ValueError('no')", 1, [], ["starting", "failed"]),
    ],
)
def test_threads_processes_and_exit_functions_of_the_program_are_waited_for(
    tmp_path: Path, leaves: str, code: int, mark: list[str], states: list[str]
) -> None:
    end = Run(tmp_path, f"{UPLOADS}{leaves}\n").end()
    assert (end.code, end.states) == (code, states), end.errors
    done = len(end.said) - len(mark)
    assert (sorted(end.said[:done]), end.said[done:]) == (["at exit", "pool", "process", "thread"], mark)


@pytest.mark.parametrize(
    "leaves", ["sys.exit(75)", "sys.exit(143)", AS_TENSORFLOW.format(error="UnavailableError('a peer')")]
)
def test_threads_are_not_waited_for_after_a_lost_peer_or_a_stop(tmp_path: Path, leaves: str) -> None:
    program = f"""
        import sys, threading, time
        class UnavailableError(Exception): ...
        threading.Thread(target=time.sleep, args=(1000,)).start()
        {leaves}
        """
    end = Run(tmp_path, program, DTJOB_STRATEGY="MultiWorkerMirrored").end()
    assert end.code == (143 if "143" in leaves else 75)


def test_threads_are_waited_for_only_for_a_limited_time_after_a_failure(tmp_path: Path) -> None:
    program = """
        import threading, time
        from dtjob_trainer.process import ending
        ending.AFTER_A_FAILURE_SECONDS = 0.1
        threading.Thread(target=time.sleep, args=(1000,)).start()
        raise ValueError("no")
        """
    end = Run(tmp_path, program).end()
    assert (end.code, end.states) == (1, ["starting", "failed"])


def test_the_limit_after_a_failure_is_none_for_a_checkpoint_on_its_way(tmp_path: Path) -> None:
    program = """
        import time
        from dtjob_trainer.process import ending, runtime
        ending.AFTER_A_FAILURE_SECONDS = 0.1
        def saves():
            time.sleep(0.5)
            print("saved", flush=True)
        runtime.current().before_the_end = saves
        raise ValueError("no")
        """
    end = Run(tmp_path, program).end()
    assert (end.code, end.said) == (1, ["saved"])


@pytest.mark.parametrize(
    ("answers", "code"), [("here.shutdown.tell_peer_preempted()", 75), ("here.shutdown.signalled = True", 143)]
)
def test_a_program_that_answers_a_stop_itself_is_not_done(tmp_path: Path, answers: str, code: int) -> None:
    """It has saved with all of its peers, and ends with 0 as they do."""
    program = f"""
        from dtjob_trainer.process import runtime
        here = runtime.current()
        {answers}
        """
    end = Run(tmp_path, program, DTJOB_STRATEGY="MultiWorkerMirrored").end()
    assert (end.code, end.said, end.states) == (code, [], ["starting"])


@pytest.mark.parametrize("leaves", ["", "sys.exit()", "sys.exit(0)"])
def test_a_program_that_waited_as_a_server_and_trained_nothing_has_failed(tmp_path: Path, leaves: str) -> None:
    program = f"""
        import sys
        from dtjob_trainer.process import runtime
        runtime.current().joined_server = True
        {leaves}
        """
    end = Run(tmp_path, program, DTJOB_STRATEGY="MultiWorkerMirrored").end()
    assert end.code == 1
    assert "NoServerError" in end.errors


def test_an_evaluator_that_ends_before_the_thread_of_signals_has_looked_has_not_finished(tmp_path: Path) -> None:
    program = """
        import os, signal, sys, threading
        from dtjob_trainer.process import runtime
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        held = runtime.current().shutdown._lock  # the thread waits for it
        held.acquire()
        later = threading.Timer(1, held.release)
        later.daemon = True
        later.start()
        os.kill(os.getpid(), signal.SIGTERM)
        """
    run = Run(tmp_path, program, DTJOB_ROLE="evaluator", DTJOB_STRATEGY="MultiWorkerMirrored")
    assert run.end().code == 143


def test_a_stop_after_training_that_failed_ends_the_wait(tmp_path: Path) -> None:
    program = """
        import threading, time
        from dtjob_trainer.process import runtime
        here = runtime.current()

        @runtime.may_be_cut_off
        def fit():
            here.shutdown.training_begins()
            raise ValueError("no")

        def upload():
            threading.main_thread().join()
            print("waited for", flush=True)
            time.sleep(1000)
        threading.Thread(target=upload).start()
        fit()
        """
    assert Run(tmp_path, program, DTJOB_GRACE_SECONDS="600").told_to_end("waited for").code == 143


def test_a_stop_ends_a_program_that_is_waited_for(tmp_path: Path) -> None:
    program = """
        import threading, time
        def upload():
            threading.main_thread().join()  # it has ended
            print("waited for", flush=True)
            time.sleep(1000)
        threading.Thread(target=upload).start()
        """
    end = Run(tmp_path, program).told_to_end("waited for")
    assert (end.code, end.said, end.states) == (143, [], ["starting"])


def test_the_wait_is_no_stall(tmp_path: Path) -> None:
    program = """
        import threading, time
        from dtjob_trainer.process import runtime
        here = runtime.current()
        here.progress.report(state="training", step=1)
        def upload():
            threading.main_thread().join()
            while here.progress.status.get("doing") != "saving":
                time.sleep(0.01)
            print("rests", flush=True)
        threading.Thread(target=upload).start()
        """
    end = Run(tmp_path, program, DTJOB_STALL_TIMEOUT_SECONDS="5").end()
    assert (end.code, end.said) == (0, ["rests", "DONE"]), end.errors


SWALLOWS = """
    import os, signal, sys, time
    from dtjob_trainer.process import runtime
    here = runtime.current()

    class UnavailableError(Exception): ...

    @runtime.may_be_cut_off
    def fit(how):
        here.begin_stage()
        if how == "peer":
            RAISES
        if how == "own":
            raise ValueError("mine")
        if how == "peer preempted":
            here.shutdown.tell_peer_preempted()
            here.stop()
        if how == "told to stop":
            here.shutdown.training_begins()
            os.kill(os.getpid(), signal.SIGTERM)
            here.shutdown.wait_signalled()
            here.stop()
        here.trained = True

    for how in sys.argv[1:]:
        try:
            fit(how)
        except BaseException as error:
            print("swallowed", error, file=sys.stderr)
    """.replace("RAISES", AS_TENSORFLOW.format(error="UnavailableError('Collective ops is aborted')"))


@pytest.mark.parametrize("role", ["chief", "worker"])
@pytest.mark.parametrize(
    ("calls", "code"),
    [
        (["well"], 0),
        (["well", "well"], 0),
        (["own"], 0),
        (["own", "well"], 0),
        (["peer"], 75),
        (["peer", "own"], 75),
        (["peer", "well"], 75),  # a call after one that was cut off is refused
        (["peer preempted"], 75),
        (["told to stop"], 143),
        (["told to stop", "own"], 143),
    ],
)
def test_a_program_whose_training_was_cut_off_has_not_finished(
    tmp_path: Path, role: str, calls: list[str], code: int
) -> None:
    program = dedent(SWALLOWS).replace("sys.argv[1:]", repr(calls))
    end = Run(tmp_path, program, DTJOB_ROLE=role, DTJOB_STRATEGY="MultiWorkerMirrored").end()
    assert end.code == code, end.errors
    assert end.states == ["starting", *(["finished"] if code == 0 else [])]
    marked = role == "chief" and calls[-1] == "well" and code == 0
    assert [line for line in end.said if not line.startswith("time=")] == ["DONE"] * marked


@pytest.mark.parametrize("then", ["sys.exit(1)", "raise RuntimeError('too many failures')"])
def test_an_error_after_training_was_cut_off_is_not_the_programs(tmp_path: Path, then: str) -> None:
    program = dedent(SWALLOWS).replace("sys.argv[1:]", repr(["peer"])) + then
    end = Run(tmp_path, program, DTJOB_ROLE="worker", DTJOB_STRATEGY="MultiWorkerMirrored").end()
    assert (end.code, end.states) == (75, ["starting"])


def test_a_program_that_catches_exceptions_does_not_try_on_without_its_peer(tmp_path: Path) -> None:
    """As a search for hyperparameters does, which would count the call as a failure of these values."""
    program = dedent(SWALLOWS).replace("sys.argv[1:]", repr(["peer", "well"])).replace("BaseException", "Exception")
    end = Run(tmp_path, program, DTJOB_ROLE="worker", DTJOB_STRATEGY="MultiWorkerMirrored").end()
    assert (end.code, end.states) == (75, ["starting"])
    assert "swallowed" not in end.errors


@pytest.mark.parametrize(("number", "code"), [(0, 143), (42, 42)])
def test_a_program_that_answers_sigterm_itself_has_not_finished(tmp_path: Path, number: int, code: int) -> None:
    """With 0 it says that it has saved: nobody knows whether it was at its end."""
    program = f"""
        import os, signal, sys, threading, time
        def saves(*_):
            threading.Thread(target=lambda: (time.sleep(0.1), print("saved", flush=True))).start()
            sys.exit({number})
        signal.signal(signal.SIGTERM, saves)
        print("trains", flush=True)
        while True:
            time.sleep(0.01)
        """
    end = Run(tmp_path, program).told_to_end("trains")
    assert (end.code, end.said, end.states) == (code, ["saved"], ["starting"]), end.errors
