#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The pages of docs/reference and the generated table of the Python package equal what schema/gen/reference.py makes of the tables."""
import os
import subprocess
import sys

SRC = os.path.abspath(os.environ.get("srcdir", "."))
sys.exit(subprocess.run([sys.executable, f"{SRC}/schema/gen/reference.py", "--check"], check=False).returncode)
