# SPDX-License-Identifier: Apache-2.0
"""The tokenizer in a decoder's folder makes the tokens of texts, and goes with the weights into the run's folder and each
checkpoint, from which training continues."""
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "data", "texts")]
from folders import SIZES, make_folder  # noqa: E402
from helper import Folder, check, dptrain, fast, finish, read_run  # noqa: E402
from small_tokenizer import write_tokenizer  # noqa: E402

TEXT = "one of the words "
PIECES = ["one", "\u0120of", "\u0120the", "\u0120words"]  # a space is \u0120 in ByteLevel


def main():
    with Folder() as tmp:
        words, runs = os.path.join(tmp, "words"), os.path.join(tmp, "runs")
        os.mkdir(words)
        for name, n in (("train.txt", 700), ("val.txt", 60)):
            with open(os.path.join(words, name), "w", encoding="ascii") as f:
                f.write(TEXT * n)
        folder = make_folder(os.path.join(tmp, "model"), "qwen3", {**SIZES, "vocab_size": 300})
        files = write_tokenizer(folder, PIECES, ["<|endoftext|>"])
        flags = ["--data-path", words, "--max-steps", 2, "-b", 2, "--global-batch-size", 2, "--seq-len", 16, "--save-steps", 2, "--report-to", "none", *fast()]
        start = folder
        for _ in range(2):
            p = dptrain("--init-from", start, *flags, "--runs-dir", runs, "--run-name", "r")
            if not check(p.returncode == 0, "from %s: exit %d: %s" % (start, p.returncode, p.stderr)):
                break
            run = read_run(runs)
            check(os.path.samefile(str(run["params"]["tokenizer"]), start), "recorded: %s" % run["params"]["tokenizer"])
            for at in (run["folder"], os.path.join(run["folder"], "checkpoints", "step-2")):
                for name, text in files.items():
                    with open(os.path.join(at, name), encoding="ascii") as f:
                        check(f.read() == text, "%s/%s is that of the model" % (at, name))
            start = os.path.join(tmp, "copy")
            if not os.path.exists(start):
                os.rename(run["folder"], start)
        p = dptrain("tokenize", "--data-path", words, "--tokenizer", folder, "--out", os.path.join(tmp, "tokens"))
        check(p.returncode == 0 and " and 301 evaluation tokens" in p.stdout, "five tokens a text: %s%s" % (p.stdout, p.stderr))
        p = dptrain("--init-from", folder, *flags[2:], "--data-path", os.path.join(tmp, "tokens"), "--runs-dir", runs + "-tokens")
        check(p.returncode == 0, "tokens of the same tokenizer: exit %d: %s" % (p.returncode, p.stderr))
        p = dptrain("tokenize", "--data-path", words, "--tokenizer", "bytes", "--out", os.path.join(tmp, "bytes"))
        p = dptrain("--init-from", folder, *flags[2:], "--data-path", os.path.join(tmp, "bytes"), "--runs-dir", runs + "-bytes")
        check(p.returncode == 2 and "made with another one (bytes)" in p.stderr, "tokens of another: exit %d: %s" % (p.returncode, p.stderr))
    finish("a decoder's own tokenizer")


main()
