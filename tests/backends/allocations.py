# SPDX-License-Identifier: Apache-2.0
"""A step after the first allocates nothing: a long and a short run of each kind of model, with smaller last batches and
evaluation, make the same number of allocations (tests/train/alloc_count.c counts malloc, calloc, realloc, memalign,
posix_memalign, aligned_alloc and mmap, in all threads of all processes). Calls from dptrain, its cpu module and libc
count; oneDNN's own do not. First, the counter is verified for each function."""
import glob
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, environment, finish, make_set, sanitized, skip  # noqa: E402

COUNTER = os.path.join(BUILD, "tests", "train", ".libs", "alloc_count.so")
RESNET = ["--model", "resnet20", "-b", 8]
# With two samples of one pixel batch norm is unstable: longer runs become non-finite.
BOTTLENECKS = ["--model", "resnet50", "--image-size", 32, "-b", 2, "--synthetic", "--lr", 1e-6]
GPT = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 64, "--synthetic", "--seq-len", 64, "-b", 4, "--opt", "adamw",
       "--lr", 1e-3, "--clip-grad-norm", 1]
# Products large enough for tiles and the library's gemm, which --deterministic chooses by rule.
WIDE = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 512, "--synthetic", "--seq-len", 128, "-b", 4, "--opt", "adamw",
        "--vocab-size", 256, "--block-size", 128, "--lr", 1e-3, "--deterministic"]
CPU = ["--backend", "cpu", "--threads", 1]
# Additional steps of the long run; and how often a process's recorder may grow a buffer.
MORE, GROWN = 12, 3

PLANTED = """
import ctypes, os
libc, p = ctypes.CDLL(None), ctypes.c_void_p()
for name in ("malloc", "calloc", "realloc", "aligned_alloc", "memalign", "mmap"):
    getattr(libc, name).restype = ctypes.c_void_p
size = ctypes.c_size_t(4096)
for i in range(%d):
    libc.malloc(size)
    libc.calloc(size, size)
    libc.realloc(None, size)
    libc.posix_memalign(ctypes.byref(p), size, size)
    libc.aligned_alloc(size, size)
    libc.memalign(size, size)
    libc.mmap(None, size, 3, 0x22, -1, ctypes.c_long(0))
libc._exit(0)
"""


def counted(base):
    return sum(int(open(f, encoding="ascii").read()) for f in glob.glob(base + ".*"))


def planted(times):
    with Folder() as tmp:
        base = os.path.join(tmp, "count")
        env = environment({"LD_PRELOAD": COUNTER, "ALLOC_COUNT_FILE": base, "PYTHONHASHSEED": "0", "PYTHONMALLOC": "pymalloc"})
        subprocess.run([sys.executable, "-c", PLANTED % times], env=env, check=True)
        return counted(base)


def counts():
    few, many = planted(10), planted(60)
    check(50 * 7 <= many - few <= 50 * 7 + 50, "50 further calls of seven functions count as %d" % (many - few))


def allocations(flags, *more):
    with Folder() as tmp:
        base = os.path.join(tmp, "count")
        p = dptrain(*flags, *more, "--system-interval", 0, "--runs-dir", os.path.join(tmp, "runs"),
                    env={"LD_PRELOAD": COUNTER, "ALLOC_COUNT_FILE": base, "ALLOC_COUNT_OF": "dptrain libc."})
        check(p.returncode == 0, "exit %d: %s" % (p.returncode, p.stderr[-1500:]))
        return counted(base)


def equal(name, few, many, processes=1):
    print("%s: %d allocations, %d in a run with %d further steps" % (name, few, many, MORE))
    check(few > 0, "%s: counted allocations" % name)
    check(abs(many - few) <= GROWN * processes, "%s: %d further steps allocate %d times" % (name, MORE, many - few))


def steps(name, *flags, processes=1):
    if "--deterministic" not in flags:
        allocations(flags, "--max-steps", 1)  # kernels are chosen by timing once
    few, many = (allocations(flags, "--max-steps", n) for n in (2, 2 + MORE))
    equal(name, few, many, processes)


def epochs(name, *flags):
    """Two epochs of a small and a larger set, each with a smaller last batch, as has its evaluation."""
    with Folder() as small, Folder() as large:
        make_set(small, train=2 * 8 + 5, val=8 + 3)
        make_set(large, train=(2 + MORE // 2) * 8 + 5, val=5 * 8 + 3)
        _, few, many = (allocations(flags, "--data-path", f, "--epochs", 2) for f in (small, small, large))
        equal(name, few, many)


def main():
    if sanitized():
        skip("allocations are not counted under a sanitizer")
    counts()
    steps("ref, two micro-batches", *RESNET[:2], "-b", 1, "--synthetic", "--image-size", 16, "--backend", "ref", "--grad-accum-steps", 2)
    found = [line for line in dptrain("backends").stdout.splitlines() if line.startswith("cpu") and "fp32" in line]
    if not found:
        print("the cpu backend is not built: its steps were not counted")
        return finish("allocations")
    kinds = [("fp32", [])]
    if "avx512_bf16" in found[0]:
        kinds.append(("bf16", ["--precision", "bf16"]))
    else:
        print("this processor does not multiply bf16: its steps were not counted")
    for kind, flags in kinds:
        epochs("ResNet-20 in %s, tails and evaluation" % kind, *RESNET, *flags, *CPU)
        steps("ResNet-50 in %s, kernels by rule" % kind, *BOTTLENECKS, *flags, *CPU, "--deterministic")
        steps("GPT in " + kind, *GPT, *flags, *CPU)
        steps("GPT with large products in " + kind, *WIDE, *flags, *CPU)
    steps("GPT with two threads", *WIDE, *CPU[:2], "--threads", 2)
    steps("GPT on two ranks", *GPT, *CPU, "--nproc-per-node", 2, "--grad-accum-steps", 2, processes=3)
    finish("allocations")


main()
