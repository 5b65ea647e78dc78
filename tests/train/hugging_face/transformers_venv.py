# SPDX-License-Identifier: Apache-2.0
"""transformers 5.23.0, PEFT 0.21.2 and gguf 0.19.0 with torch 2.13.0, from PyPI, in build/venv/transformers, for the tests that compare with it."""
import os
import subprocess
import sys

from helper import BUILD, check, skip

VENV = os.path.join(BUILD, "venv", "transformers")
PYTHON = os.path.join(VENV, "bin", "python")


def install():
    if os.path.exists(PYTHON) and not subprocess.run([PYTHON, "-c", "import torch, transformers, safetensors, peft, gguf"], capture_output=True).returncode:
        return
    made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True)
    if made.returncode:
        skip("no virtual environment: " + (made.stderr or made.stdout).strip().split("\n")[-1])
    got = subprocess.run([os.path.join(VENV, "bin", "pip"), "install", "-q", "--timeout", "20", "--retries", "1",
                          "torch==2.13.0", "transformers==5.23.0", "peft==0.21.2", "safetensors", "gguf==0.19.0"], capture_output=True, text=True)
    if got.returncode:
        skip("transformers 5.23.0 cannot be installed: " + got.stderr.strip().split("\n")[-1])


def python(script, *args):
    env = {**os.environ, "HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}
    p = subprocess.run([PYTHON, "-c", script, *args], capture_output=True, text=True, timeout=900, env=env)
    return check(p.returncode == 0, "transformers: %s" % p.stderr[-2000:])
