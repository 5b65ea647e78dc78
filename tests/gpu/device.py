"""Where the scripts of tests/gpu run: on the fake device of the build (in a bundle: of the build folder that $fakedir
names), with DPTRAIN_GPU=1 on the GPUs of this machine."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD

REAL = os.environ.get("DPTRAIN_GPU") == "1"
FAKE = os.path.join(os.environ.get("fakedir") or BUILD, "tests", "fakes", "cuda", ".libs")
LIBRARIES = {k: v for k, v in os.environ.items() if k == "DPTRAIN_CUDA_LIBS"}
# What is kept on disk for later runs stays of no use to the fake device: tests ask its libraries, and those change.
ENV = LIBRARIES if REAL else {"DPTRAIN_BACKEND_PATH": FAKE, "XDG_CACHE_HOME": "/dev/null"}
