# SPDX-License-Identifier: Apache-2.0
"""The device of the scripts in tests/gpu: the fake device of the build (in a bundle: of the build folder in $fakedir),
or with DPTRAIN_GPU=1 the GPUs of this machine."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD

REAL = os.environ.get("DPTRAIN_GPU") == "1"
FULL = os.environ.get("DPT_TEST_FULL") == "1"
FAKE = os.path.join(os.environ.get("fakedir") or BUILD, "tests", "fakes", "cuda", ".libs")
LIBRARIES = {k: v for k, v in os.environ.items() if k == "DPTRAIN_CUDA_LIBS"}
# The fake device must not use a plan cache on disk: tests count the queries to its libraries, which change.
ENV = LIBRARIES if REAL else {"DPTRAIN_BACKEND_PATH": FAKE, "XDG_CACHE_HOME": "/dev/null"}
