# SPDX-License-Identifier: Apache-2.0
"""Plans for a GPU that is not present: those for an H200 (h200.json) equal the committed plans.txt, made without a
driver, with the fakes of NVIDIA's libraries; one for the GPU described by `backends --describe` equals the plan made
on it; and refusals. `plan.py --write` rewrites plans.txt; read the difference before committing it."""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "train"))
from helper import BUILD, SOURCE, Folder, check, dptrain, finish, skip

os.environ["XDG_CACHE_HOME"] = "/dev/null"  # the fakes must not use the user's cache
FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
H200 = os.path.join(SOURCE, "tests", "gpu", "h200.json")
GOLDEN = os.path.join(SOURCE, "tests", "gpu", "plans.txt")
LAPTOP = {"DPTRAIN_BACKEND_PATH": FAKE, "DPTRAIN_FAKE_DRIVER": "0", "DPTRAIN_FAKE_DEVICES": "0"}
GPT = ["--model", "gpt2-124m", "--synthetic", "--seq-len", 1024, "--opt", "adamw", "--precision", "bf16"]
SMALL = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 64, "--vocab-size", 512, "--block-size", 32,
         "--synthetic", "--seq-len", 32, "-b", 4, "--precision", "bf16", "--backend", "cuda"]
PLANS = [
    [*GPT, "-b", 64],
    [*GPT, "-b", 1024],
    [*GPT, "-b", 16, "--grad-accum-steps", 4, "--activation-checkpointing", "full"],
    [*GPT, "-b", 16, "--strategy", "fsdp", "--zero-stage", 3, "--nproc-per-node", 8],
    [*GPT, "-b", 64, "--strategy", "pdp", "--nproc-per-node", 4],
    ["--model", "resnet50", "--synthetic", "-b", 256, "--precision", "bf16"],
    ["--model", "resnet20", "--synthetic", "-b", 128, "--precision", "fp32"],
]


def golden():
    made = []
    for flags in PLANS:
        p = dptrain("plan", "--backend", "cuda", "--hardware", H200, *flags, env=LAPTOP)
        check(p.returncode == 0 and not p.stderr, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))
        made.append("$ %s\n%s" % (" ".join(map(str, flags)), p.stdout))
    text = "\n".join(made)
    if "--write" in sys.argv:
        with open(GOLDEN, "w", encoding="utf-8") as f:
            f.write(text)
    with open(GOLDEN, encoding="utf-8") as f:
        kept = f.read().split("\n")
    now = text.split("\n")
    for a, b in zip(kept, now):
        check(a == b, "%r is committed, %r is planned" % (a, b))
    check(len(kept) == len(now), "%d lines are committed, %d are planned" % (len(kept), len(now)))


def categories(text):
    """Memory that lives for the whole step. cuBLASLt chooses nothing without a device, so workspaces are larger here,
    and the moment of peak memory may be another one."""
    return [line for line in text.splitlines() if line.split()[0] in ("model", "global", "program", "parameters", "optimizer", "inputs")]


def described(folder):
    """A plan from a description equals the plan on the device itself."""
    path = os.path.join(folder, "gpu.json")
    p = dptrain("backends", "--describe", env={"DPTRAIN_BACKEND_PATH": FAKE, "DPTRAIN_FAKE_DEVICES": "4"})
    check(p.returncode == 0, "backends --describe: exit %d: %s" % (p.returncode, p.stderr))
    with open(path, "w", encoding="utf-8") as f:
        f.write(p.stdout)
    said, h200 = json.loads(p.stdout), json.load(open(H200, encoding="utf-8"))
    check(said["ranks_per_node"] == 4 and said["memory_bytes"] == 8 << 30, "the fake machine is described: %s" % said)
    check(said["device"].keys() == h200["device"].keys(), "properties %s" % sorted(said["device"]))
    there = dptrain("plan", *SMALL, env={"DPTRAIN_BACKEND_PATH": FAKE})
    here = dptrain("plan", *SMALL, "--hardware", path, env=LAPTOP)
    check(here.returncode == 0 and there.returncode == 0, "plans: %s %s" % (here.stderr, there.stderr))
    check(categories(here.stdout) == categories(there.stdout), "planned here: %s, there: %s" % (here.stdout, there.stdout))


def refused(folder):
    plain = os.path.join(folder, "plain.json")
    with open(plain, "w", encoding="utf-8") as f:
        json.dump({"name": "plain", "memory_bytes": 1e9}, f)
    rows = [
        (["plan", *SMALL, "--hardware", plain], "--hardware %s: has no device: write a file with dptrain backends --describe, on a "
         "machine with such a GPU" % plain, 2),
        (["plan", *SMALL, "--hardware", H200, "--backend", "cpu"], "--hardware: needs --auto, or plan --backend cuda", 2),
        (["plan", *SMALL, "--hardware", H200, "--auto"], "%s: bandwidth: expected a list of 1 to 64 points" % H200, 2),
        (["backends", "--describe"], "backend cuda cannot run here: no NVIDIA driver is installed: install driver 580 or newer", 1),
    ]
    for words, line, code in rows:
        p = dptrain(*words, env=LAPTOP)
        check(p.stderr == "dptrain: error: %s\n" % line and p.returncode == code, "%s: exit %d: %s" % (line, p.returncode, p.stderr))


def main():
    if not all(os.path.exists(os.path.join(FAKE, name)) for name in ("dptrain_cuda.so", "libcudnn.so.9", "libcublasLt.so.13")):
        skip("the fake device was not built (no CUDA toolkit, or no headers of cuDNN and cuBLASLt)")
    with Folder() as tmp:
        golden()
        described(tmp)
        refused(tmp)
    finish("plan")


main()
