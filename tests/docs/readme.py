#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every command in README.md runs, with the changes in the table, or is listed with the reason why it does not."""
import page

CHANGES = [(r"/usr/share/datasets/fashion-mnist", "data"),
           (r" --precision bf16", ""),
           (r"--epochs 2", "--max-steps 2"),
           (r"^pip install \./tracker/python$", "python3 first.py"),
           (r"tensorboard-logs", "$SRC/tests/whole/foreign/runs")]
SKIPS = {r"^\./(quickstart|check)\b": "installs packages as root",
         r"^python3 -m venv |^pip install \./dptrack-|^dptrack serve": "tests/fresh installs the wheels in a bare Debian",
         r"^tensorboard ": "TensorBoard reads journals in tests/whole/tensorboard.py"}

page.run("README.md", CHANGES, SKIPS)
