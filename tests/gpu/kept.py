"""Plans of cuDNN and cuBLASLt are kept on disk: a later run asks neither library for engines and algorithms and has the same
losses, of several ranks too; one of another version asks. Files that are damaged or none of dptrain's are told of in one line, and
the next run has mended them; a disk that is full keeps nothing and ends no run. What is kept is the fastest. On the fake device, which
counts the questions."""
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
    """Losses, questions that the libraries were asked, what was said."""
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
    check(asked > 0 and files(home), "%s: the first run asks (%d) and keeps (%s)" % (name, asked, files(home)))
    got, again, said = train(name + ", second", flags, home)
    check(again == 0 and got == want, "%s: the second run asks %d times, its losses are %s, not %s" % (name, again, got, want))
    check("ignored" not in said, "%s: the second run says %s" % (name, said))
    return want


def in_threads():
    """Plans are made by all threads of the rank, each with a handle of its own: the same ones as by one, where no clock
    chooses."""
    found = []
    for threads in (1, 4):
        with Folder() as home:
            losses, handles, _ = train("%d threads" % threads, [*RESNET, "--deterministic", "--threads", threads], home, ("handle",))
            check(handles >= threads, "%d threads: %d handles" % (threads, handles))
            found.append((losses, {os.path.basename(f): open(f, "rb").read() for f in files(home)}))
    check(found[0] == found[1], "4 threads: other losses or plans than one: %s, %s" % tuple((f[0], sorted(f[1])) for f in found))


def fastest():
    """Of the engines that take a convolution the one is kept that was not slow; where no clock may choose, the first."""
    for slow, flags, want in ((0, [], b'"engine": 1'), (1, [], b'"engine": 0'), (1, ["--deterministic"], b'"engine": 1')):
        with Folder() as home:
            train("engine %d is slow" % slow, [*RESNET, "--precision", "bf16", *flags], home, DPTRAIN_FAKE_CUDNN_SLOW=str(slow))
            plans = [text for text in (open(f, "rb").read() for f in files(home)) if b'"engine"' in text]
            check(plans and all(want in text for text in plans), "engine %d is slow %s: plans are not %s" % (slow, flags, want))


def other_version(home, want):
    for library in ("CUDNN", "CUBLASLT"):
        got, asked, _ = train("another " + library, GPT, home, **{"DPTRAIN_FAKE_%s_VERSION" % library: "140000"})
        check(asked > 0 and got == want, "another %s: %d questions" % (library, asked))


def damaged(home, want):
    """A file that is cut, one with another byte in it, and one that somebody put there."""
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
    check(said.count(line) == 1 and got == want, "damage is told of in a line: %s" % said)
    check(0 < asked, "what was damaged is asked for again: %d questions" % asked)
    os.remove(foreign)
    got, asked, said = train("mended", GPT, home)
    check(asked == 0 and "ignored" not in said and files(home) == whole, "the next run has mended it: %d questions, %s" % (asked, said))


def no_room(home, want):
    """A tiny disk of its own; and a home that is none."""
    got, asked, said = train("no home", GPT, "/dev/null/none")
    check(got == want and asked > 0 and "ignored" not in said, "no home: %d questions, %s" % (asked, said))
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", home], stderr=subprocess.DEVNULL).returncode:
        print("a full disk is left out: no file system can be mounted here")
        return
    try:
        got, asked, _ = train("a full disk", GPT, home)
        check(got == want and asked > 0, "a full disk: losses %s, not %s" % (got, want))
        check(not glob.glob(os.path.join(home, "dptrain", "cuda-plans-1", "*", ".*")), "a full disk: files that were begun stay")
        got, asked, said = train("still full", GPT, home)
        check(got == want and "ignored" not in said, "a full disk leaves no half of a file: %s" % said)
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
