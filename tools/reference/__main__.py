# SPDX-License-Identifier: Apache-2.0
"""Writes the pages: python -m tools.reference."""

from tools.reference.pages import PAGES

for file, page in PAGES.items():
    file.write_text(page())
