# SPDX-License-Identifier: Apache-2.0
"""Training steps on the cuda backend allocate nothing: neither dptrain nor the module calls libc's allocator, directly
or through a libc function. A long run is compared with a short one, on the fake device, whose own allocations do not
count."""
import glob
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, finish, make_set, sanitized, skip

FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
COUNTER = os.path.join(BUILD, "tests", "train", ".libs", "alloc_count.so")
GPT = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "-b", 4, "--clip-grad-norm", 1, "--model-ema"]
RUNS = [
    ("GPT in bf16, accumulation", [*GPT, "--precision", "bf16", "--grad-accum-steps", 2]),
    ("GPT in fp16, node by node", [*GPT, "--precision", "fp16", "--no-cuda-graphs"]),
    ("ResNet in fp32", ["--model", "resnet20", "--image-size", 8, "--synthetic", "-b", 2]),
    ("two ranks", [*GPT, "--nproc-per-node", 2, "--strategy", "fsdp"]),
    ("tail batches and evaluations", None),
]
# The recorder's writer thread may let a buffer grow a few times.
ALLOWED = 15


def allocations(flags, steps):
    """flags None: a ResNet on a set whose epochs of three steps end with a smaller batch and an evaluation, which also
    has one. Starts must be equal: plans are not cached, since other tests may have cached some meanwhile, and one
    thread makes them all."""
    with Folder() as tmp:
        base = os.path.join(tmp, "count")
        if flags is None:
            flags = ["--model", "resnet20", "--data-path", make_set(tmp, 10, 7, size=8), "-b", 4, "--epochs", 100]
        p = dptrain(*flags, "--backend", "cuda", "--threads", 1, "--max-steps", steps, "--system-interval", 0,
                    "--runs-dir", os.path.join(tmp, "runs"),
                    env={"DPTRAIN_BACKEND_PATH": FAKE, "DPTRAIN_FAKE_DEVICES": "2", "XDG_CACHE_HOME": "/dev/null", "LD_PRELOAD": COUNTER,
                         "ALLOC_COUNT_FILE": base, "ALLOC_COUNT_OF": "dptrain libc."})
        check(p.returncode == 0, "exit %d: %s" % (p.returncode, p.stderr[-1500:]))
        return sum(int(open(f, encoding="ascii").read()) for f in glob.glob(base + ".*"))


def main():
    if sanitized():
        skip("allocations are not counted under a sanitizer")
    if not os.path.exists(os.path.join(FAKE, "libnccl.so.2")) or not os.path.exists(COUNTER):
        skip("the fake device was not built (no CUDA toolkit, or no header of NCCL)")
    for name, flags in RUNS:
        few, many = allocations(flags, 5), allocations(flags, 25)
        check(few > 0, "%s: counted allocations" % name)
        check(many - few < ALLOWED, "%s: 20 further steps allocate %d times" % (name, many - few))
    finish("allocations")


main()
