# SPDX-License-Identifier: Apache-2.0
"""Phases are words of the API: they, and which of them end a job, do not change."""

import json

from dtjob.api.phase import ENDED, Phase


def test_the_phases_and_their_order_do_not_change():
    words = ["Pending", "Running", "Restarting", "Suspended", "Succeeded", "Failed"]
    assert json.loads(json.dumps(list(Phase))) == words
    assert [phase for phase in Phase if phase in ENDED] == [Phase.SUCCEEDED, Phase.FAILED]


def test_a_plain_text_can_be_compared_with_phases():
    assert "Failed" in ENDED
    assert "Running" not in ENDED
    assert None not in ENDED
