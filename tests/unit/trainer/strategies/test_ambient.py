# SPDX-License-Identifier: Apache-2.0
"""dtjob_trainer.strategies.ambient: what the strategy of this process is like."""

import gc
import threading

import pytest

from dtjob_trainer.strategies import ambient


@pytest.mark.parametrize("package", ["keras", "tf_keras"])
def test_a_program_that_begins_with_a_new_graph_keeps_the_strategy(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tf, backend = pytest.importorskip("tensorflow"), pytest.importorskip(package).backend
    v1, v2 = tf.compat.v1, tf.compat.v2
    for home in (v1, v2.compat.v1, v1.compat.v1):
        monkeypatch.setattr(home, "reset_default_graph", home.reset_default_graph)
    ambient.keep_in_new_graphs()
    strategy = tf.distribute.OneDeviceStrategy("/cpu:0")
    tf.distribute.experimental_set_strategy(strategy)
    try:
        with strategy.scope():
            backend.clear_session()
        assert tf.distribute.get_strategy() is strategy
        collects = threading.Thread(target=gc.collect)  # a scope that was not left complains there
        collects.start()
        collects.join()
    finally:
        tf.distribute.experimental_set_strategy(None)
    backend.clear_session()
    assert not tf.distribute.has_strategy()
