# SPDX-License-Identifier: Apache-2.0
"""What dtjob replaces in KerasTuner once the program imports it, and KerasTuner's private names."""

from dtjob_trainer.frameworks.hooks import Hook, method

_AGAIN = "repeat the trials of a search after a restart"

WEIGHTS_PATH = Hook(
    targets=("keras_tuner.src.backend.io:write_filepath",),
    does="In a group, each task writes weights where the tuner says, and reads its own.",
    gone="search in a group",
)
WEIGHTS_REMOVED = Hook(
    targets=("keras_tuner.src.backend.io:remove_temp_dir_with_filepath",),
    does="In a group, no task removes the weights of a trial.",
    gone="search in a group",
)
TUNER_SAVED = Hook(
    targets=("keras_tuner.src.engine.base_tuner:BaseTuner.save",),
    does="It marks the directory with the job that began the search.",
    gone=_AGAIN,
)
TUNER_LOADED = Hook(
    targets=("keras_tuner.src.engine.base_tuner:BaseTuner.reload",),
    does="A search that an earlier process of the job began starts anew. Its trials return what they have.",
    gone=_AGAIN,
)
begin_search = method("_populate_initial_space", _AGAIN)
"""Have a tuner that has loaded nothing begin its search."""
