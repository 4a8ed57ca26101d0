# SPDX-License-Identifier: Apache-2.0
"""Prints what a program may notice of how its process was started."""

import gc
import json
import os
import resource
import signal
import sys
import threading
from pathlib import Path

LOOPS = ("dtjob_trainer.loops.fit", "dtjob_trainer.loops.train", "dtjob_trainer.checkpoint.model_file")
numbers = [number for number in signal.Signals if number not in (signal.SIGKILL, signal.SIGSTOP)]
print(
    json.dumps(
        {
            "arguments": sys.argv,
            "path": sys.path[:2],
            "directory": str(Path.cwd()),
            "environment": {name: value for name, value in os.environ.items() if not name.endswith("_FD")},
            "session": os.getsid(0) == os.getpid() == os.getpgrp(),
            "signals": {number.name: str(signal.getsignal(number)).partition(" at 0x")[0] for number in numbers},
            "blocked": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
            "umask": os.umask(0o22),
            "threads": threading.active_count(),
            "niceness": os.nice(0),
            "open files": resource.getrlimit(resource.RLIMIT_NOFILE),
            "descriptors": len(list(Path("/proc/self/fd").iterdir())),
            "input": str(Path("/proc/self/fd/0").readlink()),
            "unbuffered": sys.stdout.write_through,
            "flags": str(sys.flags),
            "imported": [name for name in ("keras", "tensorflow", *LOOPS) if name in sys.modules],
            "frozen": gc.get_freeze_count() >= 100_000,
            "looks for garbage": gc.isenabled(),
        }
    )
)
