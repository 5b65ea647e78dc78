# SPDX-License-Identifier: Apache-2.0
"""The tokenizer in a decoder's folder makes the tokens of texts, and goes with the weights into the run's folder and each
checkpoint, from which training continues."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from folders import SIZES, make_folder  # noqa: E402
from helper import Folder, check, dptrain, fast, finish, read_run  # noqa: E402

TEXT = "one of the words "
PIECES = ["one", "\u0120of", "\u0120the", "\u0120words"]  # a space is \u0120 in ByteLevel


def write_tokenizer(folder):
    """A byte is a token, and so are the words of the text: 5 tokens instead of 17 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    shown = [chr(b) for b in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    vocab, merges = {c: i for i, c in enumerate(shown)}, []
    for piece in PIECES:
        for end in range(2, len(piece) + 1):
            if piece[:end] not in vocab:
                vocab[piece[:end]] = len(vocab)
                merges.append([piece[:end - 1], piece[end - 1]])
    end = {"id": len(vocab), "content": "<|endoftext|>", "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    own = {"version": "1.0", "added_tokens": [end], "normalizer": None, "post_processor": None,
           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True}, "decoder": {"type": "ByteLevel"},
           "model": {"type": "BPE", "vocab": vocab, "merges": merges}}
    files = {"tokenizer.json": json.dumps(own), "tokenizer_config.json": "{}", "generation_config.json": '{"top_p": 0.5}'}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    return files


def main():
    with Folder() as tmp:
        words, runs = os.path.join(tmp, "words"), os.path.join(tmp, "runs")
        os.mkdir(words)
        for name, n in (("train.txt", 700), ("val.txt", 60)):
            with open(os.path.join(words, name), "w", encoding="ascii") as f:
                f.write(TEXT * n)
        folder = make_folder(os.path.join(tmp, "model"), "qwen3", {**SIZES, "vocab_size": 300})
        files = write_tokenizer(folder)
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
