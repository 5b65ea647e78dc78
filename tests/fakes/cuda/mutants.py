# SPDX-License-Identifier: Apache-2.0
"""mutants: removes one barrier or one bounds test of a kernel, one wait or one event in or around a program's graph,
in turn, while the cuda backend runs on the fake device, and checks that a test notices: tests/ops for kernels, the
results of a training on two ranks for waits and events, each in a few orders of threads and streams. The running code
lists the mutants. Fails if there are fewer than 60, if a kernel has one that no op reaches, or if one is not noticed
that is not listed in NOTHING_CHANGES. `mutants.py TEXT`: only those whose names contain TEXT. `./check --long` runs it."""
import concurrent.futures
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "..", "train"))
from helper import BUILD, Folder, check, digest, dptrain, environment, finish, skip

TRAINER = os.path.join(HERE, "..", "..", "..", "trainer")
FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
LEAST = 60
FRESH = {"DPTRAIN_BACKEND_PATH": FAKE, "XDG_CACHE_HOME": "/dev/null"}  # every run plans again
OWN = {"DPTRAIN_FAKE_CUBLASLT_VERSION": "120000", "DPTRAIN_FAKE_CUDNN_VERSION": "80000"}  # too old: our kernels compute everything
TABLES = [("f32", OWN), ("bf16", OWN), ("bf16", {})]
ORDERS = ("down", "7", "up")
NET = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "-b", 2, "--backend", "cuda", "--threads", 1, "--system-interval", 0, "--max-steps", 3, "--nproc-per-node", 2,
       "--strategy", "fsdp", "--clip-grad-norm", 0.5, "--opt", "adamw"]
SEEDS = ("last", "beside", "1", "2", "3")

# Mutants that are not noticed, and why nothing changes.
NOTHING_CHANGES = {
    "bounds trainer/ops/attention/flash_cuda.cu:271": "reads beyond a sequence are masked; only the sanitizer detects them",
    "bounds trainer/ops/attention/flash_cuda.cu:161": "reads beyond a sequence are masked; only the sanitizer detects them",
    "bounds trainer/ops/attention/tiled_cuda.cu:176": "reads beyond a sequence are masked; only the sanitizer detects them",
    "bounds trainer/backends/cuda/matmul_own.cu:96": "the rounded bias is followed by the library's workspace, which is written before it is read",
    "barrier trainer/ops/attention/attention_cuda.cu:79": "its lanes synchronise in a shuffle before they read; here shuffles order memory too",
}


def ops_test(words, env):
    p = subprocess.run([os.path.join(BUILD, "tests", "ops", "ops_test"), words], timeout=600, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, env=environment({**FRESH, **env}))
    return p.returncode, p.stdout.decode(errors="replace")


def reached(table):
    """Returns the mutants that a table of ops reaches: {name: the first test}."""
    dtype, env = table
    code, said = ops_test("cuda in " + dtype, {**env, "DPTRAIN_FAKE_MUTANT": "list"})
    check(code == 0, "ops in %s as they are: exit %d: %s" % (dtype, code, said[-500:]))
    found, test = {}, ""
    for line in said.splitlines():
        run = re.search(r"RUN *\] (.*)", line)
        test = run[1] if run else test
        if "mutant: " in line:
            found[line.split("mutant: ", 1)[1]] = test
    return found


def in_the_text():
    """Every barrier and bounds test in the kernels' sources."""
    places = set()
    for folder, _, names in os.walk(TRAINER):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".cu") or "cuda" in folder:
                with open(path, encoding="utf-8") as f:
                    for number, line in enumerate(f, 1):
                        kind = "barrier" if "__syncthreads()" in line else "bounds" if re.search(r"\binside\((?!bool)", line) else None
                        if kind:
                            places.add("%s trainer/%s:%d" % (kind, os.path.relpath(path, TRAINER), number))
    return places


def kernel_shows(mutant, tables):
    """Tries the first test that reached it, then the complete table."""
    first = [(found[mutant], env) for found, (_, env) in tables if mutant in found]
    whole = [("cuda in " + dtype, env) for found, (dtype, env) in tables if mutant in found]
    return any(ops_test(words, {**env, "DPTRAIN_FAKE_MUTANT": mutant, "DPTRAIN_FAKE_ORDER": order})[0] != 0
               for words, env in first + whole for order in ORDERS)


def train(**env):
    """Returns the numeric results (None if it failed), and the output."""
    with Folder() as tmp:
        try:
            p = dptrain(*NET, "--runs-dir", tmp, env={**FRESH, "DPTRAIN_FAKE_DEVICES": "2", **env}, timeout=60)
        except subprocess.TimeoutExpired:
            return None, "it hangs"
        return digest(tmp) if p.returncode == 0 else None, p.stderr


def wait_shows(mutant, want):
    """Whether the other rank is in time depends on chance: each order is tried several times before the mutant counts
    as unnoticed."""
    return any(train(DPTRAIN_FAKE_MUTANT=mutant, DPTRAIN_FAKE_SEED=seed)[0] != want for seed in SEEDS * 3)


def main():
    if not os.path.exists(os.path.join(FAKE, "libnccl.so.2")):
        skip("the fake device was not built (no CUDA toolkit, or no header of NCCL)")
    only = sys.argv[1] if len(sys.argv) > 1 else ""
    tables = [(reached(table), table) for table in TABLES]
    kernels = set().union(*(found for found, _ in tables))
    for place in sorted(in_the_text() - kernels):
        check(False, "no op reaches: %s" % place)
    want, said = train(DPTRAIN_FAKE_MUTANT="list")
    check(want, "the unchanged training fails: %s" % said[-1000:])
    streams = {line.split("mutant: ", 1)[1] for line in said.splitlines() if "mutant: wait" in line or "mutant: event" in line}
    check(len(kernels) + len(streams) >= LEAST, "%d mutants, at least %d expected" % (len(kernels) + len(streams), LEAST))
    mutants = [(m, lambda m=m: kernel_shows(m, tables)) for m in sorted(kernels)]
    mutants += [(m, lambda m=m: wait_shows(m, want)) for m in sorted(streams)]
    for m in sorted(NOTHING_CHANGES):
        check(m in kernels | streams, "there is no %s" % m)
        print("nothing changes without %s: %s" % (m, NOTHING_CHANGES[m]))
    mutants = [(m, shows) for m, shows in mutants if only in m and m not in NOTHING_CHANGES]
    unnoticed = 0
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for (m, _), noticed in zip(mutants, pool.map(lambda x: x[1](), mutants)):
            unnoticed += not noticed
            check(noticed, "not noticed: %s" % m)
    print("%d mutants of %d places in kernels and %d waits and events, %d noticed"
          % (len(mutants), len(kernels), len(streams), len(mutants) - unnoticed))
    check(len(NOTHING_CHANGES) <= 5, "at most five are listed")
    finish("mutants")


main()
