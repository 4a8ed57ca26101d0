# SPDX-License-Identifier: Apache-2.0
"""The chromium of this machine, without a window. `make browser` runs these tests; Debian's package is `chromium`."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cluster.conftest import api, cluster  # noqa: F401 (fixtures)

api_of_playwright = pytest.importorskip("playwright.sync_api", reason="`make browser` installs playwright")
WIDTH, HEIGHT = 1200, 800


@pytest.fixture(scope="session")
def chromium() -> Iterator[object]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("no chromium on the PATH (apt-get install chromium)")
    with api_of_playwright.sync_playwright() as playwright:
        # The sandbox of chromium refuses to run as root.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"] if os.getuid() == 0 else [])
        yield browser
        browser.close()


@pytest.fixture
def page(chromium) -> Iterator[object]:
    """A page in which nothing may go wrong: no error, and nothing that the policy of the server refuses."""
    page = chromium.new_page(viewport={"width": WIDTH, "height": HEIGHT})
    page.set_default_timeout(120_000)
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("dialog", lambda dialog: (wrong.append(dialog.message), dialog.dismiss()))
    yield page
    page.close()
    assert wrong == []


@pytest.fixture
def picture() -> Callable[..., None]:
    """Takes a picture of a page for the documentation, if DTJOB_PICTURES names a folder."""

    def take(page, name: str, *, full: bool = True) -> None:
        if folder := os.environ.get("DTJOB_PICTURES"):
            page.screenshot(path=Path(folder) / f"{name}.png", full_page=full)

    return take
