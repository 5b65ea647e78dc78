# SPDX-License-Identifier: Apache-2.0
"""Decoders from folders of Hugging Face by every strategy, in full and with LoRA and packed documents: losses, gradient norms and final weights on two ranks are those
of one rank in f64; with --deterministic the bits do not depend on ranks; a run that is killed
and continued has the bits of an undisturbed one; the planned memory is what is alive at once. The folders are made here,
with random weights. In full (DPT_TEST_FULL=1): every strategy on two and three ranks, the fake CUDA device, and
the memory that the process uses."""
import json
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "strategies"), os.path.join(HERE, "..", "..", "gpu")]
import device  # noqa: E402
import same  # noqa: E402
from folders import FOLDERS, SIZES, make_folder  # noqa: E402
from helper import Folder, check, digest, dptrain, fast, finish, read_run  # noqa: E402

LARGE = {**SIZES, "vocab_size": 8192, "hidden_size": 512, "intermediate_size": 1536, "num_hidden_layers": 6, "head_dim": 128,
         "max_position_embeddings": 512, "dtype": "float32"}
WAYS = {
    "ddp": {"strategy": "ddp", "world": 2, "passes": 2},
    "fsdp": {"strategy": "fsdp 3", "world": 2, "recompute": "selective"},
    "pdp": {"strategy": "pdp", "world": 2, "recompute": "full", "offload": "activation param optim"},
}
ALL_WAYS = {"%s, %d" % (s, w): {"strategy": s, "world": w} for s in same.WAYS["strategy"] for w in (2, 3) if s != "pdp" or w == 2}


def strategies(name, folder, words, more):
    """Every way has the results of one rank."""
    same.MODELS[name] = ["--init-from", folder, "--tokenizer", "bytes", "--seq-len", 16, *more]
    base = {**{k: v[0] for k, v in same.AXES.items()}, "model": name, "opt": "adamw", "clip": 0.3, "ema": not more}
    flags = same.maths_flags(base, {"gpt": words})
    alone = same.run(flags)
    for title, way in ({**WAYS, **ALL_WAYS} if device.FULL else WAYS).items():
        wrong = same.first_difference(same.run(flags + same.way_flags({**base, **way})), alone)
        check(not wrong, "%s, %s: %s" % (name, title, wrong))
    if device.REAL or (device.FULL and os.path.exists(os.path.join(device.FAKE, "dptrain_cuda.so"))):
        wrong = same.first_difference(same.run([*(f if f != "ref" else "cuda" for f in flags), "--precision", "fp64"], device.ENV), alone)
        check(not wrong, "%s, cuda: %s" % (name, wrong))


def bits(name, folder, words, more):
    """One digest of losses, gradient norms, weights and moments for every number of ranks, also after a death."""
    flags = ["--init-from", folder, "--tokenizer", "bytes", "--data-path", words, "--seq-len", 16, "--opt", "adamw", "--lr", 1e-3, "--global-batch-size", 12,
             "-b", 2, "--deterministic", "--max-steps", 6, "--save-steps", 3, "--run-name", "r", "--report-to", "none", "--workers", 0, *fast(), *more]
    alone = None
    two = ["--nproc-per-node", 2]
    for title, way in (("1 rank", []), ("2 ranks", two), ("3 ranks, fsdp", ["--nproc-per-node", 3, "--strategy", "fsdp"]),
                       ("killed", [*two, "--resume", "auto"])):
        with Folder() as runs:
            if title == "killed":
                p = dptrain(*flags, *way, "--runs-dir", runs, env={"DPTRAIN_TEST_DIE": "1:5", "DPTRAIN_TEST_SLOW_RANK": "0:25"})
                check(p.returncode in (1, -9), "%s: rank 1 dies at step 5: exit %d: %s" % (name, p.returncode, p.stderr))
            p = dptrain(*flags, *way, "--runs-dir", runs)
            check(title != "killed" or "continuing after step 3" in p.stderr, "%s: continues: %s" % (name, p.stderr))
            if check(p.returncode == 0, "%s, %s: exit %d: %s" % (name, title, p.returncode, p.stderr)):
                got = digest(runs)
                alone = alone or got
                check(got == alone, "%s, %s: other bits than on 1 rank" % (name, title))


def memory(name, folder):
    flags = ["--init-from", folder, "--synthetic", "--seq-len", 256, "--opt", "adamw", "-b", 8, *fast()]
    p = dptrain("plan", *flags, "--dump=summary")
    found = re.search(r"([0-9.]+) MiB planned, lower bound ([0-9.]+) MiB", p.stdout)
    if check(found, "plan of %s: %s" % (name, p.stderr)):
        planned, bound = map(float, found.groups())
        check(planned <= 1.05 * bound, "%s: planned %.1f MiB, %.1f MiB are alive at once" % (name, planned, bound))
    if not device.FULL:
        return
    with Folder() as runs:
        p = dptrain(*flags, "--max-steps", 2, "--runs-dir", runs, "--report-to", "none", timeout=600)
        if check(p.returncode == 0, "%s, large: exit %d: %s" % (name, p.returncode, p.stderr)):
            series = read_run(runs)["series"]
            planned, used = (max(series[("memory/%s_bytes" % k, 0)].values()) for k in ("planned", "used"))
            print("%s: planned %.1f MiB, used %.1f MiB" % (name, planned / 2**20, used / 2**20))
            check(planned > 500 << 20 and abs(used - planned) <= 0.05 * planned, "%s: planned %d bytes, used %d" % (name, planned, used))


def make_documents(folder, words):
    """The words as documents of 1 to 13 bytes, so that several share a sample."""
    os.mkdir(folder)
    for name in ("train", "val"):
        with open(os.path.join(words, name + ".txt"), encoding="ascii") as f:
            text = f.read()
        with open(os.path.join(folder, name + ".jsonl"), "w", encoding="ascii") as f:
            while text:
                n = 1 + len(text) % 13
                f.write(json.dumps({"text": text[:n]}) + "\n")
                text = text[n:]


def main():
    with Folder() as tmp:
        words, documents = os.path.join(tmp, "words"), os.path.join(tmp, "documents")
        os.mkdir(words)
        same.make_words(words)
        make_documents(documents, words)
        for name in FOLDERS:
            folder = make_folder(os.path.join(tmp, name), name, SIZES)
            for title, data, more in ((name, words, []), (name + " with LoRA, packed", documents, ["--lora", 3, "--pack", "documents"])):
                if device.FULL or name == "qwen3" or not more:
                    strategies(title, folder, data, more)
                    bits(title, folder, data, more)
            memory(name, make_folder(os.path.join(tmp, name + "-large"), name, LARGE))
    finish("decoders by every strategy")


main()
