# SPDX-License-Identifier: Apache-2.0
"""Writes the targets of all hooks, named by the module or class that has each, and how long each hook lasts."""

import json
import sys
from pathlib import Path

from dtjob_trainer.frameworks.hooks import resolved
from dtjob_trainer.frameworks.table import HOOKS

found = {}
for hook in HOOKS.values():
    for target in hook.targets if hook.package != "keras_tuner" else ():
        home, name = resolved(target, hook.adds) or (None, "")
        if isinstance(home, type):
            kind = next((each for each in home.__mro__ if name in vars(each)), home)
            found |= {f"{each.__module__}.{each.__qualname__}.{name}": hook.lasts for each in (home, kind)}
        elif home is not None:
            found[f"{home.__name__}.{name}"] = hook.lasts
Path(sys.argv[1]).write_text(json.dumps(found))
