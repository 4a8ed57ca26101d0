# SPDX-License-Identifier: Apache-2.0
"""Finds, installs or builds what end-to-end tests need: `python -m tools.cluster.prepare`. No test waits for it then.

What cannot be had is said in one line, and ends with 0: the tests that need it are skipped.
"""

import sys

from tools import binaries, images
from tools.cluster import provider
from tools.node.packages import UnavailableError


def main() -> None:
    """Get everything, the slowest first."""

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    try:
        provider.choose(say)
        binaries.find(["helm"], say)
        images.build(say=say)
    except (UnavailableError, binaries.BinariesError, images.ImagesError) as error:
        say(f"{error}\nmake: without it the end-to-end tests are skipped")


if __name__ == "__main__":
    main()
