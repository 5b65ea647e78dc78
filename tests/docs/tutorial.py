#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command in docs/tutorial.md runs, with the changes in the table; tests/whole/tour.py runs its section "A
training day"."""
import page

CHANGES = [(r" +--precision bf16", ""),
           (r"/usr/share/datasets/fashion-mnist", "data"),
           (r"--epochs 2", "--max-steps 4"),
           (r"--max-steps 200?\b", "--max-steps 14"),
           (r"-b 128 --max-steps 30", "-b 4 --max-steps 20"),
           (r"--seconds 10", "--seconds 2"),
           (r"--global-batch-size 128 --max-steps", "--global-batch-size 32 --max-steps")]
SKIPS = {r"^\./quickstart\b|^sudo ": "installs packages as root", r"^python3 -m venv |^pip install ": "tests/python/install.py does"}

page.run("docs/tutorial.md", CHANGES, SKIPS, without_section="A training day")
