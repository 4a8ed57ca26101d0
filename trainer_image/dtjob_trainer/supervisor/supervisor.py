"""The supervisor: keeps one task's training process running, in step with its peers. PID 1 of a training container.

It starts the training process, lets it go when the rendezvous says so, starts it again in place when a peer was lost
(exit 75), stays until the chief task has finished, passes SIGTERM on, and answers /status all the while. What to do
after an exit is decided in restart_in_place.py, who may start in rendezvous.py; this file does the I/O.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dtjob_trainer.contract import log_line
from dtjob_trainer.contract.template import Template
from dtjob_trainer.rendezvous.client import HttpAsk, RendezvousClient
from dtjob_trainer.rendezvous.host import RendezvousHost, rendezvous_of
from dtjob_trainer.rendezvous.messages import Answer, Phase, Registration
from dtjob_trainer.supervisor import restart as policy
from dtjob_trainer.supervisor.reaper import Reaper, port_is_free
from dtjob_trainer.supervisor.server import StatusServer
from dtjob_trainer.supervisor.status import TaskStatus, last_of_done
from dtjob_trainer.supervisor.training_process import TrainingProcess

if TYPE_CHECKING:
    from dtjob_trainer.contract.task import Task

NOTICE_SECONDS = 0.5
"""For which a process that trains may notice by itself that its generation is over, before it is killed. Most do within
0.1 s; one that waits for a peer which has noticed before it takes until its own heartbeat, about 9 s."""

KILL_SECONDS = 10.0
"""For which killed processes may take to be gone; then the container ends, as nobody else can end them."""

PORT_SECONDS = 30.0
"""For which another process may hold TensorFlow's port before the container ends."""

FAREWELL_SECONDS = 3.0
"""For which the chief task's supervisor waits until all of its group have heard that training is done."""

DONE_SECONDS = 30.0
"""As long where the chief task was replaced after the end: some of its group may look for it under its old address."""

COULD_NOT_KILL, PORT_TAKEN = 71, 1


class Supervisor:
    """Runs one task to its end."""

    def __init__(
        self, task: Task, command: Sequence[str], environ: Mapping[str, str], template: Template | None = None
    ) -> None:
        """`command` starts the training process; `environ` is its environment, the two pipes' variables left out;
        `template` one that waits already.

        Raises TaskError where the environment does not say where the rendezvous is.
        """
        self._task, self._command, self._environ = task, list(command), dict(environ)
        self._id = os.urandom(6).hex()
        self._status = TaskStatus(task.id, task.attempt, os.getpid(), task.uid)
        self._history = policy.History()
        self._reaper = Reaper(self._on_exit)
        self._process: TrainingProcess | None = None
        self._called: asyncio.Future[str | None] | None = None
        """While it stays after its training: why the group trains again, or None where the container may end."""
        restarts = task.in_cluster and not task.serves_only  # the others never start again in place
        self._template = template
        if template is None and restarts and self._command[1:3] == ["-m", "dtjob_trainer.run"]:
            self._template = Template()
        self._phase: Phase = "waiting"
        self._generation = 0
        self._terminating = self._chief_finished = False
        self._ended_by_us = self._told_to_restart = self._peer_changed = False
        self._cause, self._chief_id = "", ""
        self._preempted: set[str] = set()
        self._host: RendezvousHost | None = None
        self._client: RendezvousClient | None = None
        if task.in_cluster:
            self._host = rendezvous_of(task, self._id) if task.is_chief else None
            ask = self._host.answer_own if self._host else HttpAsk(task.rendezvous, len(task.members))
            self._client = RendezvousClient(ask, self._registration, self._on_answer, self._on_problem)

    async def run(self) -> int:
        """Run the task to its end. Returns the exit code of the container."""
        task = self._task
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._terminate)
        self._reaper.start()
        server = StatusServer(
            self._status.to_json,
            {"namespace": task.namespace, "job": task.name, "task": task.id},
            self._host.answer if self._host else None,
        )
        if task.status_port:
            try:
                # Under `dtjob run` all supervisors share one machine, which may have strangers on its network.
                await server.start("127.0.0.1" if task.parent else None, task.status_port)
            except OSError as error:
                self._log(f"DTJOB_STATUS_PORT {task.status_port} cannot be listened on: {error}", "error")
                return PORT_TAKEN
        if task.is_chief and task.checkpoint:
            last = last_of_done(task.checkpoint.directory, task.uid)
            if last is not None:
                self._log(f"{task.checkpoint.directory} is marked DONE by this job: nothing is left to train")
                self._status.merge(last)
                self._status.ended("finished")
                return await self._end(0, DONE_SECONDS)
        async with asyncio.TaskGroup() as group:  # a bug in reporting must not go unseen
            reporting: asyncio.Task[None] | None = None
            code = None
            while code is None:
                code = await self._make_room()
                if code is None and self._terminating:
                    code = policy.TERMINATED
                if code is None:
                    self._start()
                    if self._client and reporting is None:
                        reporting = group.create_task(self._client.run())
                    code = await self._until_end()
            code = await self._end(code)
            if reporting:
                reporting.cancel()
        return code

    async def _make_room(self) -> int | None:
        """End what the last training process left behind, wait for the port. Returns an exit code where that fails."""
        left = await self._reaper.kill_all(KILL_SECONDS, spare=self._template.pid if self._template else None)
        if left:
            self._log(f"processes {left} cannot be killed: ending the container with {COULD_NOT_KILL}", "error")
            return COULD_NOT_KILL
        port = int(self._task.address.rpartition(":")[2]) if self._task.address else None
        deadline = time.monotonic() + PORT_SECONDS
        while port and not port_is_free(port) and not self._terminating:
            if time.monotonic() > deadline:
                taken = f"port {port} of the cluster file is held by another process: ending with {PORT_TAKEN}"
                self._log(taken, "error")
                return PORT_TAKEN
            self._status.message = f"waiting for port {port}, which another process holds"
            await asyncio.sleep(0.05)
        self._status.message = ""
        return None

    def _start(self) -> None:
        self._ended_by_us = self._told_to_restart = self._peer_changed = False
        self._cause, self._preempted = "", set()
        self._process = TrainingProcess(self._command, self._environ, self._on_progress, self._template)
        self._reaper.leaders.add(self._process.pid)
        self._reaper.reap()  # its SIGCHLD may have come before it was known
        incarnation = self._history.restarts
        self._phase = "running" if self._task.serves_only else "waiting"
        self._status.started(incarnation, self._process.pid)
        if self._client is None or self._task.serves_only:
            self._go(incarnation + 1)
        elif self._client:
            self._client.news()

    async def _until_end(self) -> int | None:
        """Wait for the training process to end. Returns the container's exit code, None for another start."""
        process = self._process
        assert process is not None
        returncode = await process.exited
        process.close()
        self._process = None
        if self._phase == "serving":
            self._phase = "running"
        ended = policy.Ended(
            returncode,
            step=self._status.step,
            terminating=self._terminating,
            ended_by_us=self._ended_by_us,
            chief_finished=self._chief_finished,
            chief_may_need_it=self._client is not None and not self._host and not self._task.serves_only,
            peer_changed=self._peer_changed,
            cause=self._cause,
        )
        decision, self._history = policy.after_exit(self._history, ended, time.time())
        if isinstance(decision, policy.Stay):
            cause = await self._until_called()
            if cause is None:
                decision = policy.End(0, "finished")
            else:
                decision, self._history = policy.restart(self._history, cause, time.time())
        if isinstance(decision, policy.End):
            self._status.ended("finished" if decision.code == 0 else "failed")
            failed = decision.code not in (0, policy.TERMINATED)
            self._log(f"{decision.reason}: ending with {decision.code}", "error" if failed else "info")
            return decision.code
        self._status.ended("waiting")
        self._status.restarts(self._history.restarts, decision.time, decision.cause)
        self._last_restart = decision
        self._log(f"restarting in place ({self._history.restarts}): {decision.cause}", "warning")
        return None

    async def _until_called(self) -> str | None:
        """Stay without a training process. Returns None when the chief task has finished, else why it trains again."""
        self._status.ended("finished")
        self._status.message = "waiting for the chief task to finish"
        self._called = asyncio.get_running_loop().create_future()
        cause = await self._called
        self._called, self._status.message = None, ""
        return cause

    async def _end(self, code: int, farewell: float = FAREWELL_SECONDS) -> int:
        left = await self._reaper.kill_all(KILL_SECONDS)
        if left:
            self._log(f"processes {left} cannot be killed and are left behind", "error")
        if code == 0:
            self._leave_last_words()
        if code == 0 and self._host:
            await self._host.finish(farewell)
        return code

    def _leave_last_words(self) -> None:
        """Write the last status where the kubelet picks it up: whoever reads the pod's status need not have polled."""
        if not self._task.termination_log:
            return
        try:
            Path(self._task.termination_log).write_text(json.dumps(self._status.to_json()))
        except OSError as error:
            self._log(f"the last status cannot be left at {self._task.termination_log}: {error}", "warning")

    def _terminate(self) -> None:
        """SIGTERM: the training process may save; what is left shortly before the grace period ends is killed."""
        process, grace = self._process, self._task.grace_seconds
        self._call(None)
        if not self._terminating:
            self._log("told to end (SIGTERM)")
            self._terminating = True
            margin = min(1.5, grace / 4)
            asyncio.get_running_loop().call_later(grace - margin, self._grace_is_over)
        if process is None:
            return
        if self._phase == "waiting":
            self._kill()  # it has nothing to save
            return
        self._phase = "preempted"
        if self._client:
            self._client.news()
        process.terminate()

    def _grace_is_over(self) -> None:
        if self._process is not None:
            self._log("the training process did not end within the grace period: killing it", "warning")
            self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            self._ended_by_us = True
            self._process.kill()

    def _call(self, cause: str | None) -> None:
        if self._called is not None and not self._called.done():
            self._called.set_result(cause)

    def _go(self, generation: int) -> None:
        assert self._process is not None
        self._generation = generation
        if self._phase == "waiting":
            self._phase = "running"
        self._status.state, self._status.message = "starting", ""
        self._process.go(generation)
        if self._client:
            self._client.news()

    def _on_exit(self, pid: int, returncode: int) -> None:
        if self._process is not None and pid == self._process.pid and not self._process.exited.done():
            self._process.exited.set_result(returncode)

    def _on_progress(self, progress: dict[str, object]) -> None:
        self._status.merge(progress)
        if self._phase == "running" and self._task.serves_only and self._status.state == "serving":
            self._phase = "serving"
            if self._client:
                self._client.news()

    def _registration(self) -> Registration:
        task = self._task
        return Registration(
            task.uid, task.cluster_hash, task.id, task.attempt, self._id, self._status.incarnation, self._phase,
            self._generation, self._status.step,
        )  # fmt: skip

    def _on_problem(self, problem: str) -> None:
        self._status.message = f"cannot reach the chief task's supervisor at {self._task.rendezvous}: {problem}"

    def _on_answer(self, asked: Registration, answer: Answer) -> None:
        process = self._process
        self._chief_finished = self._chief_finished or answer.kind == "done"
        if answer.kind in ("done", "restart") and asked.incarnation == self._status.incarnation:
            self._call(answer.message if answer.kind == "restart" else None)
        if process is None or process.exited.done() or asked.incarnation != self._status.incarnation:
            return
        if answer.kind in ("wait", "continue", "refused"):
            self._status.message = answer.message
        elif answer.kind == "go" and self._phase == "waiting" and not self._terminating:
            self._note_changes(answer)
            self._log(f"go: generation {answer.generation}")
            self._go(answer.generation)
        elif answer.kind == "restart" and self._phase == "running" and not self._told_to_restart:
            self._told_to_restart, self._cause = True, self._cause or answer.message
            self._log(f"generation {asked.generation} is over: {answer.message}", "warning")
            # In its start-up TensorFlow would wait for the lost peer, and there is nothing to save yet.
            patience = 0.0 if self._status.state in ("waiting", "starting") else NOTICE_SECONDS
            self._kill_if_still_running(process, time.monotonic() + patience)
        elif answer.kind == "done" and self._phase == "waiting":
            self._kill()
        for peer in answer.preempted:
            if peer not in self._preempted and self._phase == "running":
                self._preempted.add(peer)
                self._peer_changed, self._cause = True, f"{peer} was preempted"
                process.tell_peer_preempted(peer)

    def _note_changes(self, answer: Answer) -> None:
        """A go tells who was replaced since the last one: now the last restart's cause is known."""
        changed, cause = bool(answer.changed), answer.message
        if self._chief_id and answer.chief != self._chief_id:
            changed, cause = True, "the chief task was lost"
        self._chief_id = answer.chief
        if changed:
            self._history = policy.peers_changed(self._history)
        if changed and cause and self._history.restarts:
            self._status.restarts(self._history.restarts, self._last_restart.time, cause)

    def _kill_if_still_running(self, process: TrainingProcess, deadline: float) -> None:
        """Kill at `deadline`, or when it has saved, whichever is later; it may end by itself before."""
        if process.exited.done() or self._terminating:
            return
        remaining = deadline - time.monotonic()
        checkpoint = self._task.checkpoint
        if self._status.saves and checkpoint:
            remaining += checkpoint.save_timeout_seconds
        if remaining <= 0:
            self._kill()
        else:
            asyncio.get_running_loop().call_later(min(0.5, remaining), self._kill_if_still_running, process, deadline)

    def _log(self, message: str, level: log_line.Level = "info") -> None:
        log_line.write(sys.stderr, message, level=level, task=self._task.id, step=self._status.step)
