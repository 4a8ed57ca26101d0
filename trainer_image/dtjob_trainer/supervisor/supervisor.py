# SPDX-License-Identifier: Apache-2.0
"""The supervisor: PID 1 of a training container. It runs one task's training process together with its peers.

It starts the training process and lets it go when the rendezvous says so. It starts the process again in place after a
lost peer (exit 75) or a crash. It stays until the chief task has finished, passes SIGTERM on, and serves /status.
restart.py decides what to do after an exit, and answers.py after an answer of the rendezvous. This file does the I/O.
"""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from dtjob_trainer.contract import exit_codes, log_line
from dtjob_trainer.contract.task import Task
from dtjob_trainer.contract.template import Template
from dtjob_trainer.rendezvous.client import HttpAsk, RendezvousClient
from dtjob_trainer.rendezvous.host import rendezvous_of
from dtjob_trainer.rendezvous.messages import Answer, Registration
from dtjob_trainer.supervisor import answers
from dtjob_trainer.supervisor import restart as policy
from dtjob_trainer.supervisor.ports import PortInUse, TakeLog, listen, port_is_free
from dtjob_trainer.supervisor.reaper import Reaper, oom_kills
from dtjob_trainer.supervisor.stall import ABORT_SECONDS, STOPPED, StallGuard
from dtjob_trainer.supervisor.status import TaskStatus, leave_last_words
from dtjob_trainer.supervisor.training_process import TrainingProcess
from dtjob_trainer.supervisor.unreached import Unreached

KILL_SECONDS = 10.0
"""Killed processes have so long to be gone. After that the container ends, as nothing else can end them."""
PORT_SECONDS = 30.0
"""Another process may hold TensorFlow's port for so long. After that the container ends."""
FAREWELL_SECONDS = 3.0
"""The chief task's supervisor waits so long until its whole group has heard that training is done."""
DONE_SECONDS = 30.0
"""How long it waits if the chief task was replaced after the end: some tasks may look for it at its old address."""


class Supervisor:
    """Runs one task to its end."""

    def __init__(
        self,
        task: Task,
        command: Sequence[str],
        environ: Mapping[str, str],
        template: Template | None = None,
        take_log: TakeLog | None = None,
    ) -> None:
        """`command` starts the training process with `environ` and the variables of its pipes. `template`: one that
        waits already. `take_log`: keeps what other tasks send of their logs. Raises TaskError if the environment does
        not say where the rendezvous is."""
        self._take_log = take_log
        self._task, self._command, self._environ = task, list(command), dict(environ)
        self._id = os.urandom(6).hex()
        self._status = TaskStatus(task)
        self._host = host = rendezvous_of(task, self._id) if task.in_cluster and task.is_chief else None
        """The rendezvous, in the chief task of a group."""
        self._client: RendezvousClient | None = None
        """What reports to the rendezvous. None outside a cluster."""
        if task.in_cluster:
            ask = (lambda own: host.answer(own, None)) if host else HttpAsk(task.rendezvous, len(task.members))
            self._client = RendezvousClient(ask, self._registration, self._on_answer, self._on_problem)
        self._background: list[asyncio.Task[None]] = []
        self._reaper = Reaper(self._on_exit)
        self._history, self._now = policy.History(), answers.Incarnation()
        known, clock = host.rendezvous if host else None, time.monotonic
        self._stalls = StallGuard(task, self._end_stalled, lambda for_: known.silent(for_, clock()) if known else {})
        self._status.silent = lambda: self._stalls.silent
        self._unreached = Unreached(task, lambda for_: known.unheard(for_, clock()) if known else {})
        self._status.unreached = lambda: self._unreached.found(clock())
        self._status.crashes = lambda: known.crashes if known else self._history.crashes
        self._process: TrainingProcess | None = None
        """The training process. While there is none, the last one."""
        self._oom_kills = 0
        """Kills for want of memory in this container when the training process began."""
        self._terminating = False
        self._called: asyncio.Future[str | None] | None = None
        """Set while it stays after its training. Result: why the group trains again, or None to end."""
        may_start_again = bool(task.waits_for_go or task.restart_signals)
        forks = may_start_again and self._command[1:3] == ["-m", "dtjob_trainer.run"]
        self._template = template or (Template() if forks else None)

    async def run(self) -> int:
        """Run the task to its end. Returns the exit code of the container."""
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._terminate)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))  # blocked since __main__ began
        self._reaper.start()
        try:
            await listen(self._task, self._status.to_json, self._host.answer if self._host else None, self._take_log)
        except PortInUse as error:
            self._log(str(error), "error", error.facts)
            return exit_codes.FAILED
        checkpoint = self._task.checkpoint if self._task.is_chief else None
        if checkpoint and self._status.take_over_done(checkpoint.directory):
            self._log(f"{checkpoint.directory} is marked DONE by this job: nothing is left to train")
            return await self._end(exit_codes.FINISHED, DONE_SECONDS)
        async with asyncio.TaskGroup() as group:  # so that a bug in reporting is not hidden
            self._background = [group.create_task(self._stalls.watch())]
            code = await self._end(await self._train(group))
            for each in self._background:
                each.cancel()
        return code

    async def _train(self, group: asyncio.TaskGroup) -> int:
        """Run one training process after the other. Returns the container's exit code."""
        code = None
        self._status.first_step.begins()
        while code is None:
            code = await self._make_room()
            if code is None:
                await self._start()
                if self._client and len(self._background) == 1:
                    self._background.append(group.create_task(self._client.run()))
                code = await self._until_end()
        return code

    async def _make_room(self) -> int | None:
        """End the processes that the last training process left. Then wait until TensorFlow's port is free.

        Returns an exit code if the container must end.
        """
        left = await self._reaper.kill_all(KILL_SECONDS, spare=self._template.pid if self._template else None)
        if left:
            code = exit_codes.COULD_NOT_KILL
            self._log(f"processes {left} cannot be killed: ending the container with {code}", "error")
            return code
        port, deadline = self._task.port, time.monotonic() + PORT_SECONDS
        while port and not port_is_free(port) and not self._terminating:
            if time.monotonic() > deadline:
                code = exit_codes.FAILED
                self._log(f"port {port} of the cluster file is held by another process: ending with {code}", "error")
                return code
            self._status.message = f"waiting for port {port}, which another process holds"
            await asyncio.sleep(0.05)
        self._status.message = ""
        return exit_codes.TERMINATED if self._terminating else None

    async def _start(self) -> None:
        """Start a training process. Let it go at once if it waits for no other task."""
        with self._reaper.held():
            process = await TrainingProcess.start(self._command, self._environ, self._on_progress, self._template)
            self._process = process
            self._reaper.leaders.add(process.pid)
            self._stalls.process_changed(process.pid)
            self._oom_kills = oom_kills()
            self._now = answers.Incarnation(self._history.restarts)
        self._status.started(self._now.number, process.pid)
        if self._task.waits_for_go:
            self._unreached.waits(time.monotonic())
            self._news()
        else:
            self._now = replace(self._now, phase="running")
            self._history = replace(self._history, generation=self._now.number + 1)
            self._go()
        if self._terminating:  # told while it started
            self._kill()

    def _go(self) -> None:
        assert self._process is not None
        self._unreached.goes()
        self._status.state, self._status.message = "starting", ""
        self._process.go(self._history.generation)
        self._status.first_step.look_later()
        self._news()

    async def _until_end(self) -> int | None:
        """Wait until the training process has ended. Returns the container's exit code, or None to start again."""
        assert self._process is not None
        returncode = await self._process.exited
        self._process.close()
        self._unreached.goes()
        self._stalls.process_changed(None)
        if self._now.phase == "serving":
            self._now = replace(self._now, phase="running")
        ended = policy.Ended(
            returncode,
            task=self._task.id,
            restart_signals=self._task.restart_signals,
            step=self._status.step,
            trained_from=self._status.trained_from,
            terminating=self._terminating,
            ended_by_us=self._now.ended_by_us,
            chief_may_need_it=self._task.waits_for_go and not self._task.is_chief,
            peer_changed=bool(self._now.preempted),
            cause=self._now.cause,
            stalled=self._stalls.found.reason if self._stalls.found else "",
            out_of_memory=oom_kills() > self._oom_kills,
        )
        decision, self._history = policy.after_exit(self._history, ended, time.time())
        if isinstance(decision, policy.Stay):
            decision = await self._stay()
        if isinstance(decision, policy.End):
            self._status.ended("finished" if decision.code == exit_codes.FINISHED else "failed")
            failed = decision.code not in (exit_codes.FINISHED, exit_codes.TERMINATED)
            facts = self._status.of_failure(decision.code, self._stalls.found) if decision.code else {}
            self._log(f"{decision.reason}: ending with {decision.code}", "error" if failed else "info", facts)
            return decision.code
        self._status.ended("waiting")
        self._status.restarts(self._history.restarts, decision.time, decision.cause)
        self._log(f"restarting in place ({self._history.restarts}): {decision.cause}", "warning")
        return None

    async def _stay(self) -> policy.End | policy.Restart:
        """Stay without a training process until the chief task has finished or the group trains again."""
        self._status.ended("finished")
        self._status.message = "waiting for the chief task to finish"
        self._called = asyncio.get_running_loop().create_future()
        cause = await self._called
        self._called, self._status.message = None, ""
        if cause is None:
            return policy.End(exit_codes.FINISHED, "finished")
        decision, self._history = policy.restart(self._history, cause, time.time())
        return decision

    async def _end(self, code: int, farewell: float = FAREWELL_SECONDS) -> int:
        """End all processes that are left, and report the end. `code` is the container's exit code."""
        left = await self._reaper.kill_all(KILL_SECONDS)
        self._status.first_step.ends()
        if left:
            self._log(f"processes {left} cannot be killed and are left behind", "error")
        if code == exit_codes.FINISHED:
            try:
                leave_last_words(self._status.to_json(), self._task.termination_log)
            except OSError as error:
                self._log(f"the last status cannot be left at {self._task.termination_log}: {error}", "warning")
            if self._host:
                await self._host.finish(farewell)
        return code

    def _terminate(self) -> None:
        """On SIGTERM: let the training process save. Shortly before the grace period ends, kill what still runs."""
        self._call(None)
        if not self._terminating:
            self._terminating = True
            self._log("told to end (SIGTERM)")
            grace = self._task.grace_seconds
            asyncio.get_running_loop().call_later(grace - min(1.5, grace / 4), self._grace_is_over)
        if self._process is None or self._now.ended:
            return
        if self._now.phase == "waiting":
            self._kill()  # it has nothing to save
            return
        self._now = replace(self._now, phase="preempted")
        self._news()
        self._process.terminate()

    def _grace_is_over(self) -> None:
        if self._process is not None and not self._now.ended:
            self._log("the training process did not end within the grace period: killing it", "warning")
            self._kill()

    def _kill(self) -> None:
        if self._process is not None and not self._now.ended:
            self._now = replace(self._now, ended_by_us=True)
            self._process.kill()

    def _end_stalled(self, straggler: str, how: str) -> None:
        """End this container, because training has stalled over `straggler`. `how` says how the straggler is behind."""
        if self._process is None or self._now.ended or self._stalls.found or self._terminating:
            return
        self._log(f"{self._stalls.find(straggler, how).reason}; where the threads of this process are:", "error")
        self._process.abort()
        asyncio.get_running_loop().call_later(ABORT_SECONDS, self._kill)

    def _call(self, cause: str | None) -> None:
        if self._called is not None and not self._called.done():
            self._called.set_result(cause)

    def _on_exit(self, pid: int, returncode: int) -> None:
        if self._process is not None and pid == self._process.pid and not self._now.ended:
            self._now = replace(self._now, ended=True)
            self._process.exited.set_result(returncode)

    def _on_progress(self, progress: dict[str, object]) -> None:
        self._status.merge(progress)
        self._stalls.heard(progress)
        if self._now.phase == "running" and self._task.serves_only and self._status.state == "serving":
            self._now = replace(self._now, phase="serving")
            self._news()

    def _registration(self) -> Registration:
        task, now = self._task, self._now
        return Registration(
            task.uid, task.cluster_hash, task.id, task.attempt, self._id, now.number, now.phase,
            self._history.generation, self._status.step, self._stalls.over, self._stalls.stopped, self._stalls.doing,
            crash=self._history.crash,
        )  # fmt: skip

    def _on_problem(self, problem: str) -> None:
        self._status.message = f"cannot reach the chief task's supervisor at {self._task.rendezvous}: {problem}"
        self._warn(self._unreached.failed(problem, time.monotonic()))

    def _on_answer(self, asked: Registration, answer: Answer) -> None:
        self._stalls.answered(answer.chief_attempt)
        self._warn(self._unreached.answered(time.monotonic()))
        actions, self._history, self._now = answers.on_answer(
            self._history, self._now, asked, answer, terminating=self._terminating, starting=self._status.starting
        )
        for action in actions:
            self._act(action)

    def _act(self, action: answers.Action) -> None:
        assert self._process is not None
        match action:
            case answers.Show(message):
                self._status.message = message
            case answers.Go(generation):
                if last := self._history.last_restart:  # its cause may be known only now
                    self._status.restarts(self._history.restarts, last.time, last.cause)
                self._log(f"go: generation {generation}")
                self._go()
            case answers.GiveUp(generation, cause, patience):
                self._log(f"generation {generation} is over: {cause}", "warning")
                self._kill_if_still_running(self._process, time.monotonic() + patience)
            case answers.Kill():
                self._kill()
            case answers.TellOfPreemption(peer):
                self._process.tell_peer_preempted(peer)
            case answers.EndStalled(straggler, how):
                self._end_stalled(straggler, how)
            case answers.StayNoLonger(why):
                self._call(why)

    def _kill_if_still_running(self, process: TrainingProcess, deadline: float) -> None:
        """Kill `process` at `deadline`, or later if it still saves. It may end by itself before."""
        if process.exited.done() or self._terminating:
            return
        remaining = deadline - time.monotonic()
        checkpoint = self._task.checkpoint
        if self._status.saves and checkpoint:
            remaining += checkpoint.save_timeout_seconds
        if remaining <= 0 and self._stalls.frozen:
            self._end_stalled(self._task.id, STOPPED)  # it is the peer that the others have lost
        elif remaining <= 0:
            self._kill()
        else:
            asyncio.get_running_loop().call_later(min(0.5, remaining), self._kill_if_still_running, process, deadline)

    def _news(self) -> None:
        """Something about this task has changed: report at once."""
        if self._client:
            self._client.news()

    def _warn(self, message: str) -> None:
        if message:
            self._log(message, "warning")

    def _log(self, message: str, level: log_line.Level = "info", facts: log_line.Facts | None = None) -> None:
        log_line.write(sys.stderr, message, level=level, task=self._task.id, step=self._status.step, facts=facts)
