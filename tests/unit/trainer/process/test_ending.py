# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.process.ending: what a program leaves to do in the background is waited for."""

import subprocess
import sys

ENDS = """
import atexit, os, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from dtjob_trainer.process import ending

told = threading.Event()

def tell(message):
    print(message, flush=True)
    told.set()

def upload(name):
    told.wait()
    os.write(1, (name + "\\n").encode())
    raise ValueError(f"in {name}")

atexit.register(upload, "first registered")
atexit.register(upload, "last registered")
ThreadPoolExecutor(1, "pool").submit(upload, "pool")
threading.Thread(target=upload, args=("thread",), name="sender").start()
threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
ending.TELL_SECONDS = 0.05
ending.wait_as_python_does(tell, None, lambda: None)
print("end", flush=True)
os._exit(0)
"""


def test_threads_and_exit_functions_are_waited_for_in_pythons_order() -> None:
    command = [sys.executable, "-c", ENDS]
    result = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    told, *said = result.stdout.splitlines()
    assert told == "the program has ended, but for its threads pool_0, sender: waiting for it"
    assert sorted(said[:2]) == ["pool", "thread"], result.stderr
    assert said[2:] == ["last registered", "first registered", "end"]
    for name in ("thread", "last registered", "first registered"):
        assert f"ValueError: in {name}" in result.stderr
