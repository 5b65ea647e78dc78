# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/all from the bundle, unpacked in an empty folder, on the fake device: a call that is too short leaves
parts for the next, which continues; results.json has them; the source tree is not read. In full: every part, including `speed`."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from device import FAKE, FULL
from helper import BUILD, SOURCE, Folder, check, environment, finish, skip

BUNDLE = os.path.join(BUILD, "dptrain-gpu-bundle.tar.zst")
LIMIT = 32 << 20
QUICK = ["conformance", "ops-f64", "memcheck"]  # one that passes, one of ops_test, one that the fake device skips


def make():
    p = subprocess.run(["sh", os.path.join(SOURCE, "tests", "gpu", "bundle.sh")], env=environment({"srcdir": SOURCE, "builddir": BUILD}),
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    check(p.returncode == 0, "make gpu-bundle: " + p.stdout)
    check(os.path.getsize(BUNDLE) <= LIMIT, "the bundle has at most %d bytes" % LIMIT)


def call(folder, *flags):
    """Returns exit code, output, and the saved results."""
    env = {k: v for k, v in environment().items() if k not in ("srcdir", "builddir", "DPT_TEST_FULL")}
    p = subprocess.run([os.path.join(folder, "dptrain-gpu-bundle", "tests", "gpu", "all"), *flags, "--fake", BUILD], cwd=folder, env=env,
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True, timeout=600)
    kept = {}
    if os.path.exists(os.path.join(folder, "results.json")):
        with open(os.path.join(folder, "results.json"), encoding="utf-8") as f:
            kept = json.load(f)
    return p.returncode, p.stdout, kept


def in_pieces(folder):
    only = ["--only", ",".join(QUICK)]
    code, said, kept = call(folder, "correct", *only, "--minutes", "0")
    check(code == 3 and kept.get("results") == {}, "no time: all parts remain: exit %d, %s" % (code, said))
    code, said, kept = call(folder, "correct", *only)
    check(code == 0, "exit %d: %s" % (code, said))
    verdicts = {name: r["verdict"] for name, r in kept.get("results", {}).items()}
    check(verdicts == {"conformance": "passed", "ops-f64": "passed", "memcheck": "skipped"}, "verdicts: %s" % verdicts)
    check(kept.get("commit") and any(line.startswith("cuda") for line in kept.get("backends", [])), "what ran where: %s" % kept)
    seconds = {name: r["seconds"] for name, r in kept["results"].items()}
    code, said, again = call(folder, "correct", *only)
    check(code == 0 and {n: r["seconds"] for n, r in again["results"].items()} == seconds, "parts with a result are not repeated: %s" % said)


def whole(folder):
    for part in ("correct", "speed"):
        code, said, kept = call(folder, part)
        check(code == 0, "all %s: exit %d: %s" % (part, code, said))
        check("0 left" in said, "no part remains: %s" % said)
        print(said.strip())
    failed = [name for name, r in kept["results"].items() if r["verdict"] == "failed"]
    check(not failed and len(kept["results"]) >= 14, "all parts: %s" % kept["results"])


def main():
    if not os.path.exists(os.path.join(FAKE, "libcublasLt.so.13")):
        skip("the fake device was not built (no CUDA toolkit, or no headers of its libraries)")
    make()
    with Folder() as folder:
        subprocess.run(["tar", "--zstd", "-xf", BUNDLE, "-C", folder], check=True)
        in_pieces(folder)
        if FULL:
            whole(folder)
    finish("bundle")


main()
