#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command in README.md runs, with the changes in the table, or is listed with the reason why it does not."""
import page

CHANGES = [(r"/usr/share/datasets/fashion-mnist", "data"),
           (r" --precision bf16", ""),
           (r"--epochs 2", "--max-steps 2")]
SKIPS = {r"^\./quickstart\b|^sudo ": "installs packages as root",
         r"^python3 -m venv |^pip install ": "tests/python/install.py does"}

page.run("README.md", CHANGES, SKIPS)
