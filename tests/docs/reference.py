#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference equal what schema/gen/reference.py generates from the tables."""
import os
import subprocess
import sys

SRC = os.path.abspath(os.environ.get("srcdir", "."))
sys.exit(subprocess.run([sys.executable, f"{SRC}/schema/gen/reference.py", "--check"], check=False).returncode)
