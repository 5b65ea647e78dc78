# SPDX-License-Identifier: Apache-2.0
"""The plan cache of cuDNN and cuBLASLt on disk: a later run queries neither library for engines and algorithms and has
the same losses, also with several ranks; another version queries again. Damaged files, and files of other programs,
are reported in one line, and the next run has repaired them; a full disk caches nothing and ends no run. The cache has
the fastest engine. On the fake device, which counts the queries."""
import glob
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from device import FAKE
from helper import Folder, check, dptrain, finish, read_run, skip

GPT = ["--model", "gpt2-124m", "--n-layer", 2, "--n-head", 2, "--n-embd", 32, "--block-size", 16, "--vocab-size", 61, "--synthetic",
       "--seq-len", 16, "-b", 2, "--max-steps", 2, "--precision", "bf16"]
RESNET = ["--model", "resnet20", "--image-size", 8, "--synthetic", "-b", 2, "--max-steps", 1, "--lr", 0.01]
FSDP = [*GPT, "--nproc-per-node", 2, "--strategy", "fsdp"]


def train(name, flags, home, questions=("engines", "algorithms"), **env):
    """Returns losses, the number of queries to the libraries, and the output."""
    with Folder() as tmp:
        notes = os.path.join(tmp, "notes")
        p = dptrain(*flags, "--backend", "cuda", "--system-interval", 0, "--runs-dir", tmp,
                    env={"DPTRAIN_BACKEND_PATH": FAKE, "DPTRAIN_FAKE_DEVICES": "2", "XDG_CACHE_HOME": home, "DPTRAIN_FAKE_NOTES": notes, **env})
        if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr[-2000:])):
            return None, 0, ""
        lines = []
        if os.path.exists(notes):
            with open(notes, encoding="ascii") as f:
                lines = f.read().split("\n")
        return read_run(tmp)["series"][("train/loss", -1)], sum(lines.count(k) for k in questions), p.stderr


def files(home):
    return sorted(f for f in glob.glob(os.path.join(home, "dptrain", "cuda-plans-1", "*", "*")))


def kept_and_found(name, flags, home):
    want, asked, _ = train(name + ", first", flags, home)
    check(asked > 0 and files(home), "%s: the first run queries (%d) and caches (%s)" % (name, asked, files(home)))
    got, again, said = train(name + ", second", flags, home)
    check(again == 0 and got == want, "%s: the second run queries %d times, its losses are %s, not %s" % (name, again, got, want))
    check("ignored" not in said, "%s: the second run prints %s" % (name, said))
    return want


def in_threads():
    """All threads of the rank make plans, each with its own handle: the same plans as by one thread, if nothing is
    chosen by timing."""
    found = []
    for threads in (1, 4):
        with Folder() as home:
            losses, handles, _ = train("%d threads" % threads, [*RESNET, "--deterministic", "--threads", threads], home, ("handle",))
            check(handles >= threads, "%d threads: %d handles" % (threads, handles))
            found.append((losses, {os.path.basename(f): open(f, "rb").read() for f in files(home)}))
    check(found[0] == found[1], "4 threads: different losses or plans than one: %s, %s" % tuple((f[0], sorted(f[1])) for f in found))


def fastest():
    """Of the engines for a convolution the faster one is cached; if timing is not allowed, the first."""
    for slow, flags, want in ((0, [], b'"engine": 1'), (1, [], b'"engine": 0'), (1, ["--deterministic"], b'"engine": 1')):
        with Folder() as home:
            train("engine %d is slow" % slow, [*RESNET, "--precision", "bf16", *flags], home, DPTRAIN_FAKE_CUDNN_SLOW=str(slow))
            plans = [text for text in (open(f, "rb").read() for f in files(home)) if b'"engine"' in text]
            check(plans and all(want in text for text in plans), "engine %d is slow %s: plans are not %s" % (slow, flags, want))


def other_version(home, want):
    for library in ("CUDNN", "CUBLASLT"):
        got, asked, _ = train("another " + library, GPT, home, **{"DPTRAIN_FAKE_%s_VERSION" % library: "140000"})
        check(asked > 0 and got == want, "another %s: %d queries" % (library, asked))


def damaged(home, want):
    """A truncated file, one with a changed byte, and one of another program."""
    whole = files(home)
    with open(whole[0], "r+b") as f:
        f.truncate(os.path.getsize(whole[0]) // 2)
    with open(whole[1], "r+b") as f:
        f.seek(-3, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-3, os.SEEK_END)
        f.write(bytes([byte ^ 1]))
    foreign = os.path.join(os.path.dirname(whole[0]), "README")
    with open(foreign, "w", encoding="ascii") as f:
        f.write("nothing of dptrain's\n")
    folder = os.path.dirname(whole[0])
    got, asked, said = train("damage", GPT, home)
    line = "backend cuda: ignored 3 files in %s that are damaged or not dptrain's" % folder
    check(said.count(line) == 1 and got == want, "damage is reported in one line: %s" % said)
    check(0 < asked, "damaged plans are queried again: %d queries" % asked)
    os.remove(foreign)
    got, asked, said = train("mended", GPT, home)
    check(asked == 0 and "ignored" not in said and files(home) == whole, "the next run has repaired the cache: %d queries, %s" % (asked, said))


def no_room(home, want):
    """A tiny full disk; and a home that does not exist."""
    got, asked, said = train("no home", GPT, "/dev/null/none")
    check(got == want and asked > 0 and "ignored" not in said, "no home: %d queries, %s" % (asked, said))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", home], stderr=subprocess.DEVNULL).returncode:
        print("a full disk: skipped, mounting is not permitted")
        return
    try:
        got, asked, _ = train("a full disk", GPT, home)
        check(got == want and asked > 0, "a full disk: losses %s, not %s" % (got, want))
        check(not glob.glob(os.path.join(home, "dptrain", "cuda-plans-1", "*", ".*")), "a full disk: unfinished files remain")
        got, asked, said = train("still full", GPT, home)
        check(got == want and "ignored" not in said, "a full disk leaves no partial file: %s" % said)
    finally:
        subprocess.run(["umount", home], check=True)


def main():
    if not all(os.path.exists(os.path.join(FAKE, "lib%s" % n)) for n in ("cublasLt.so.13", "cudnn.so.9", "nccl.so.2")):
        skip("the fake device was not built (no CUDA toolkit, or no headers of its libraries)")
    with Folder() as home:
        want = kept_and_found("GPT", GPT, home)
        damaged(home, want)
        other_version(home, want)
    with Folder() as home:
        kept_and_found("ResNet", RESNET, home)
        kept_and_found("two ranks", FSDP, home)
    in_threads()
    fastest()
    with Folder() as home:
        no_room(home, want)
    finish("kept plans")


main()
