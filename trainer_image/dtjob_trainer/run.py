# SPDX-License-Identifier: Apache-2.0
"""The training process: `python3 -m dtjob_trainer.run ENTRYPOINT ARGS…` (contract.md).

Imports TensorFlow, waits for the rendezvous' go, makes the strategy ambient, runs the user's program, and ends with the
exit code that tells the supervisor whose failure it was.
"""

import contextlib
import faulthandler
import json
import os
import runpy
import signal
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NoReturn

from dtjob_trainer import imports
from dtjob_trainer.contract import exit_codes, kept_logs, log_line, pipes, template
from dtjob_trainer.contract.doing import SAVING
from dtjob_trainer.contract.parent import die_with_parent
from dtjob_trainer.contract.task import DEFAULT_GRACE_SECONDS, Task
from dtjob_trainer.errors import StrategyError, TaskError
from dtjob_trainer.process import ending, failure, origin, own_training, requirements, runtime
from dtjob_trainer.process.peer_loss import is_peer_loss
from dtjob_trainer.process.progress import Progress
from dtjob_trainer.process.shutdown import Shutdown, stops_training
from dtjob_trainer.program import servers

EVALUATOR_NICENESS = 10
"""The evaluator yields the processor to training where they share a machine."""


def code_of_exit(leave: SystemExit) -> int:
    """The exit code that `sys.exit` was given; prints what it was given instead of one, as Python does."""
    if leave.code is None or isinstance(leave.code, int):
        return leave.code or exit_codes.FINISHED
    sys.stderr.write(f"{leave.code}\n")
    return exit_codes.FAILED


def main(arguments: Sequence[str]) -> NoReturn:
    """Run the program that `arguments` name, and end the process with the contract's exit code."""
    if pipes.PROGRESS in os.environ:
        die_with_parent(signal.SIGKILL, os.getppid())
    if not arguments:
        sys.stderr.write("usage: python3 -m dtjob_trainer.run ENTRYPOINT [ARGS…]\n")
        _end(exit_codes.USAGE)
    try:
        task = Task.from_environment(os.environ)
    except TaskError as error:
        log_line.write(sys.stderr, str(error), level="error")
        _end(exit_codes.USAGE)
    shutdown = Shutdown(task.grace_seconds if task else DEFAULT_GRACE_SECONDS)
    shutdown.install()
    here = runtime.Runtime(task, Progress.from_environment(os.environ), shutdown)
    runtime.enter(here)
    process, code = os.getpid(), exit_codes.FINISHED
    try:
        _run(here, arguments)
    except BaseException as error:
        code = _code_after(error, here, tells=os.getpid() == process)
    if os.getpid() != process:
        _end(code)  # a child that the program has forked: its end says nothing of the task's
    if code not in (exit_codes.PEER_LOST, exit_codes.TERMINATED) and here.cut_off is None:
        # after a failure, a thread that never ends must not keep the task from being started again
        limit = None if code == exit_codes.FINISHED else ending.AFTER_A_FAILURE_SECONDS
        with here.pulse.resting(SAVING):  # no step is to come
            ending.wait_as_python_does(here.log, limit, lambda: _end(code))
    if code == exit_codes.FINISHED:
        code = code_of_good_end(here)
    if code == exit_codes.FINISHED:
        _finish(here)
    here.leave(starts_again=code == exit_codes.PEER_LOST and not shutdown.signalled)
    _end(code)


def code_of_good_end(here: runtime.Runtime) -> int:
    """The exit code of a program that has ended with 0: another one where that comes of training that was cut off, or
    of a stop that it has answered itself, its own or a peer's, for then it is to go on."""
    if here.trained:
        return exit_codes.FINISHED
    if here.cut_off is not None:
        return here.cut_off
    here.shutdown.catch_up()
    return here.shutdown.exit_code if here.shutdown.requested else exit_codes.FINISHED


def _code_after(error: BaseException, here: runtime.Runtime, *, tells: bool) -> int:
    """The exit code after `error`, which is printed as Python does; the supervisor hears of it where this `tells`."""
    if isinstance(error, SystemExit):
        code = code_of_exit(error)
        tells &= isinstance(error.code, str) or bool(origin.line_of_argparse(error))
    else:
        failure.note_advice(error, here.shapes, here.members)
        with contextlib.suppress(OSError):  # a log that cannot be written is no other error
            traceback.print_exception(error.with_traceback(origin.without_our_frames(error)))
        code = exit_codes.PEER_LOST if is_peer_loss(error, here.members) else exit_codes.FAILED
    if code == exit_codes.FAILED and here.cut_off is not None:
        code = here.cut_off  # whatever the program has made of it
    if tells and code in (exit_codes.FAILED, exit_codes.USAGE):
        here.pulse.report_steps()  # the operator compares the step with the checkpoints of the next start
        exception = failure.described(error, here.begun_in, trained=here.trained)
        here.progress.report(state="failed", message=failure.in_one_line(error), exception=exception)
    return code


def _run(here: runtime.Runtime, arguments: Sequence[str]) -> None:
    task = here.task
    if here.is_evaluator:
        os.nice(EVALUATOR_NICENESS)
    _install_requirements(here)
    if task is not None and task.computes_nothing:
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"  # before TensorFlow looks
    if task is None or task.integrated or task.serves_only:
        imports.of_a_training_process(serves_only=task is not None and task.serves_only)  # during the rendezvous
        template.leave_behind(os.environ, lambda request: main(request.arguments))
    _end_if_done(here)
    if kept_logs.GATHERED in os.environ:
        from dtjob_trainer.process.bucket_log import BucketLog

        here.bucket_log = BucketLog.begin(here.task, here.warn)
    _wait_for_go(here)
    if task is not None and task.stall_seconds is not None:
        faulthandler.enable()  # so that SIGABRT writes where all threads are
        here.pulse.begin()
    here.progress.report(state="starting")
    if task is not None:
        _enter_strategy(here, task)
    _run_entrypoint(here, arguments)


def _install_requirements(here: runtime.Runtime) -> None:
    """Install program.requirements, once in a container. A failure ends the process as one of the program."""
    if here.task is not None and here.task.serves_only:
        return
    try:
        requirements.install(os.environ, here.log)
    except requirements.RequirementsError as error:
        _fail(here, type(error).__name__, str(error))


def _fail(here: runtime.Runtime, kind: str, message: str) -> NoReturn:
    """End as after an error of the program, which does not begin."""
    log_line.write(sys.stderr, message, level="error", task=here.task.id if here.task else None)
    here.progress.report(state="failed", message=message, exception={"type": kind, "message": message})
    sys.exit(exit_codes.FAILED)


def _enter_strategy(here: runtime.Runtime, task: Task) -> None:
    from dtjob_trainer.strategies.proxies import past_proxies

    if task.data_service:
        os.environ.update(past_proxies(os.environ, {"data": [task.data_service]}))
        from dtjob_trainer.service import servers as data_servers

        if task.role == "data":
            data_servers.serve(here, task)
        if task.is_chief:
            data_servers.dispatch(task)
    config = task.tf_config()
    if config is not None:
        os.environ["TF_CONFIG"] = json.dumps(config)
        os.environ.update(past_proxies(os.environ, config["cluster"]))
    if task.serves_only:
        from dtjob_trainer.process import serving

        serving.serve(here, task)
    if task.integrated:
        _make_strategy(here, task)
        _give_to_the_program(here, task)
        own_training.watch(here)
        return
    if config is None:
        os.environ["TF_CONFIG"] = json.dumps(task.tf_config_of_one())
    here.make_strategy = lambda: _make_strategy_late(here, task)


def _make_strategy(here: runtime.Runtime, task: Task) -> None:
    """Make the strategy of the job ambient, with all that `fit` and `train` need."""
    import keras

    from dtjob_trainer.frameworks import datasets, hooks
    from dtjob_trainer.models import initial_values
    from dtjob_trainer.strategies import ambient, create

    create.see_gpus(task.gpus, here.log)
    create.configure_devices(task.strategy_options)
    if not task.in_cluster:
        os.environ.pop("TF_CONFIG", None)  # one of the program's own would be another cluster for TensorFlow
    ambient.make_ambient(task)
    if not task.in_cluster:
        os.environ["TF_CONFIG"] = json.dumps(task.tf_config_of_one())
    initial_values.watch(here.strategy, task)
    hooks.put(datasets.INTERLEAVE, datasets.noting_order)
    if task.in_cluster or task.is_evaluator:
        hooks.put(datasets.CACHE_FILE, datasets.cache_of_task(task.name, task.id))
    here.shutdown.catch()
    keras.utils.set_random_seed(runtime.SEED)


def _make_strategy_late(here: runtime.Runtime, task: Task) -> None:
    """Make the strategy of the job ambient when a program asks for it, which TensorFlow may refuse by then."""
    try:
        _make_strategy(here, task)
    except RuntimeError as error:
        raise StrategyError(
            "dtjob_trainer.strategy() comes too late: call it at the top of the program, before TensorFlow's first "
            f"operation ({failure.in_one_line(error)})"
        ) from error


def _give_to_the_program(here: runtime.Runtime, task: Task) -> None:
    """Put what a program finds in a job in place of TensorFlow's and Keras's own."""
    from dtjob_trainer.program import (
        constructors,
        devices,
        keras_methods,
        outside_replicas,
        tuners,
        whole_files,
    )

    constructors.give_the_jobs(here, task)
    devices.leave_to_the_job(here)
    whole_files.save_whole(here, task)
    if task.in_cluster:
        devices.stay_here(task)
    if task.traits.collective:
        whole_files.keep_apart(here, task)
    tuners.search_again(here, task)
    outside_replicas.take_means()
    if task.traits.distributed:
        outside_replicas.load_outside_of_scopes(here)
        outside_replicas.call_outside_of_replicas()
    keras_methods.use_ours(task.traits)
    keras_methods.refuse_where_wrong(task)
    if task.traits.asynchronous:
        outside_replicas.iterate_in_chief(here)
    else:
        servers.start_none(here, task)
        servers.refuse_coordinators(task)
    outside_replicas.read_variables()
    if not task.traits.collective:
        outside_replicas.count_for_each_replica()


def _run_entrypoint(here: runtime.Runtime, arguments: Sequence[str]) -> None:
    entrypoint, begun_in = arguments[0], Path.cwd()
    sys.argv, here.begun_in = list(arguments), begun_in
    if here.task is not None:
        from dtjob_trainer.program import working_directory

        script = Path(entrypoint).absolute()
        working_directory.enter_own(here.task)
        if entrypoint.endswith(".py") and not Path(entrypoint).is_file():
            entrypoint = str(script)
    if entrypoint.endswith(".py"):
        if not Path(entrypoint).is_file():
            message = f"program.entrypoint {arguments[0]!r} is not a file in {begun_in}"
            _fail(here, FileNotFoundError.__name__, message)
        sys.path.insert(0, str(Path(entrypoint).resolve().parent))
    else:
        sys.path.insert(0, str(Path.cwd()))
    try:
        if entrypoint.endswith(".py"):
            runpy.run_path(entrypoint, run_name="__main__")
        else:
            runpy.run_module(entrypoint, run_name="__main__", alter_sys=True)
    except SystemExit as leave:
        if leave.code in (None, 0):
            servers.refuse_to_wait(here)
        raise
    servers.refuse_to_wait(here)


def _end_if_done(here: runtime.Runtime) -> None:
    """End with 0 if the run is marked DONE at a URI, which the supervisor cannot read. Other paths it has looked at."""
    task = here.task
    if task is None or not here.is_chief or task.checkpoint is None or "://" not in task.checkpoint.directory:
        return
    from dtjob_trainer.checkpoint import done, object_store
    from dtjob_trainer.supervisor.status import last_in

    directory = task.checkpoint.directory
    if not object_store.is_known(directory):  # the program may bring the file system
        return
    last = last_in(done.read(directory), task.uid)
    if last is not None:
        here.log(f"{directory} is marked DONE by this job: nothing is left to train")
        here.progress.report(**{**last, "state": "finished"})
        _end(exit_codes.FINISHED)


def _wait_for_go(here: runtime.Runtime) -> None:
    descriptor = os.environ.get(pipes.GO)
    if not descriptor:
        return
    here.progress.report(state="waiting")
    pipe = os.fdopen(int(descriptor), encoding="utf-8")
    if not pipe.readline().endswith("\n"):
        _end(exit_codes.PEER_LOST)  # end of file: the rendezvous was given up
    threading.Thread(target=_listen, args=(pipe, here), name="go-pipe", daemon=True).start()


def _listen(pipe: IO[str], here: runtime.Runtime) -> None:
    for line in pipe:
        if stops_training(json.loads(line), here.traits):
            here.shutdown.tell_peer_preempted()


def _finish(here: runtime.Runtime) -> None:
    """Mark the run done once the program has ended well, and all that it did in the background."""
    if here.task is None or here.is_evaluator or here.task.serves_only:
        return
    if here.task.is_chief and here.task.checkpoint is not None and (here.trained or not here.began):
        from dtjob_trainer.checkpoint import done

        done.mark_done(here.task, here.progress.status)
    here.progress.report(state="finished")


def _end(code: int) -> NoReturn:
    """End at once: an ordinary exit waits up to 35 seconds in TensorFlow's shutdown barrier for a lost peer."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # perhaps nobody reads any more
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    # under `python -m` this file is `__main__`; the runtime must live in the imported package
    from dtjob_trainer.run import main as imported_main

    imported_main(sys.argv[1:])
