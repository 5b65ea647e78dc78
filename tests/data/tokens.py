#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts and tokens: the output of `dptrain tokenize` compared with Python's reading of the format and, for BPE, with
the reference implementation's recorded tokens (make_bpe.py); training on a folder of texts, which is tokenised once;
damaged and unusable token files: one line, exit code 2."""
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("builddir", "."))
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")
DPTRAIN = os.path.join(BUILD, "dptrain")
SMALL = ["--model", "gpt2-124m", "--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "32"]
failures = []


def check(ok, text):
    if not ok:
        failures.append(text)
        print("FAILED: " + text)
    return ok


def dptrain(*args, cwd, env=None):
    return subprocess.run([DPTRAIN, *args], cwd=cwd, capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, **(env or {})})


def read_tokens(path):
    with open(path, "rb") as f:
        b = f.read()
    magic, version, width, vocab, count, name = struct.unpack_from("<8sIIQQ96s", b)
    check(magic == b"DPTOKENS" and version == 1, "%s: header" % path)
    return vocab, name.rstrip(b"\0").decode(), list(struct.unpack_from("<%d%s" % (count, {2: "H", 4: "I"}[width]), b, 128))


def write_tokens(path, tokens, **changes):
    width, vocab = changes.get("width", 2), changes.get("vocab", 256)
    with open(path, "wb") as f:
        f.write(struct.pack("<8sIIQQ96s", changes.get("magic", b"DPTOKENS"), changes.get("version", 1), width, vocab,
                            changes.get("count", len(tokens)), changes.get("name", b"bytes")))
        f.write(struct.pack("<%d%s" % (len(tokens), {2: "H", 4: "I"}.get(width, "H")), *tokens))


def write_documents(path, documents, **changes):
    """Writes a token file with the ends of its documents."""
    tokens, ends = [t for d in documents for t in d], []
    for d in documents:
        ends.append((ends[-1] if ends else 0) + len(d))
    write_tokens(path, tokens, **changes)
    with open(path, "ab") as f:
        f.write(b"\0" * (-f.tell() % 8) + struct.pack("<8sqQ%dQ" % len(ends), b"DPENDING", changes.get("separator", -1), len(ends), *ends))


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def tokenize(tmp, text, *flags):
    out = os.path.join(tmp, "out")
    shutil.rmtree(out, ignore_errors=True)
    write(os.path.join(tmp, "t", "a.txt"), text)
    p = dptrain("tokenize", "--data-path", "t", "--out", out, *flags, cwd=tmp)
    check(p.returncode == 0, "tokenize %s: exit %d: %s" % (flags, p.returncode, p.stderr))
    return out


def as_bytes(tmp):
    text = bytes(range(256)) * 3 + b"line\n" * 50
    out = tokenize(tmp, text)
    train, val = read_tokens(os.path.join(out, "train.tokens")), read_tokens(os.path.join(out, "val.tokens"))
    check(train[:2] == val[:2] == (256, "bytes"), "the tokenizer is recorded: %s %s" % (train[:2], val[:2]))
    check(bytes(train[2] + val[2]) == text, "the bytes are preserved")
    check(0 < len(val[2]) <= len(text) // 10 and train[2][-1] == 10, "the last tenth, from a line's start, is for evaluation")
    out = tokenize(tmp, text, "--val-split", "0")
    check(not os.path.exists(os.path.join(out, "val.tokens")), "without a share there is no file")


def as_bpe(tmp):
    folder = os.path.join(HERE, "bpe")
    with open(os.path.join(folder, "golden.json"), encoding="ascii") as f:
        golden = json.load(f)
    with open(os.path.join(folder, "vocab.json"), encoding="utf-8") as f:
        separator = json.load(f)["<|endoftext|>"]
    for i, g in enumerate(golden):
        out = tokenize(tmp, g["text"].encode(), "--tokenizer", folder, "--val-split", "0")
        vocab, name, tokens = read_tokens(os.path.join(out, "train.tokens"))
        check(vocab == 600 and len(name) == 64, "vocabulary of 600, hash of the files: %d %s" % (vocab, name))
        check(tokens == [separator] + g["tokens"], "text %d has the reference's tokens" % i)
    out = tokenize(tmp, b"caf\xc3\xa9 \xff\xc3 \xe2\x82", "--tokenizer", folder, "--val-split", "0")
    check(len(read_tokens(os.path.join(out, "train.tokens"))[2]) > 5, "invalid UTF-8 is accepted")


def on_texts(tmp):
    folder = os.path.join(tmp, "texts")
    write(os.path.join(folder, "one.txt"), b"To be, or not to be, that is the question.\n" * 30)
    write(os.path.join(folder, "val.txt"), b"Whether it is nobler in the mind to suffer\n" * 5)
    flags = [*SMALL, "--data-path", folder, "-b", "4", "--epochs", "2", "--lr", "0.1", "--backend", "ref", "--runs-dir",
             os.path.join(tmp, "runs")]
    p = dptrain(*flags, "--nproc-per-node", "2", cwd=tmp)
    check(p.returncode == 0 and "perplexity" in p.stdout, "training on texts: exit %d: %s" % (p.returncode, p.stderr))
    check("41 training and 7 evaluation samples of 32 tokens, vocabulary of 256" in p.stdout, "samples are counted: %s" % p.stdout)
    made = [os.path.join(d, f) for d, _, files in os.walk(os.path.join(folder, ".dptrain")) for f in files if f == "train.tokens"]
    check(len(made) == 1, "tokenised once: %s" % made)
    before = os.stat(made[0]).st_ino
    again = dptrain(*flags, cwd=tmp)
    check(again.returncode == 0 and os.stat(made[0]).st_ino == before, "the second run finds the tokens: %s" % again.stderr)
    write(os.path.join(folder, "one.txt"), b"Something else.\n" * 60)
    again = dptrain(*flags, cwd=tmp)
    check(again.returncode == 0 and "30 training" in again.stdout, "a changed text is tokenised again: %s" % again.stdout)


def refused(tmp, words, *flags):
    p = dptrain(*flags, "--max-steps", "3", "--backend", "ref", "--runs-dir", os.path.join(tmp, "runs"), cwd=tmp)
    lines = p.stderr.splitlines()
    check(p.returncode == 2 and any(words in line for line in lines) and len(lines) <= 2,
          "%s: exit %d, expected 2 and %r: %s" % (" ".join(flags[-6:]), p.returncode, words, p.stderr))


def bad_files(tmp):
    good = list(range(100))
    changes = {"magic": ({"magic": b"DPTOKENZ"}, "does not begin with"), "version": ({"version": 2}, "version 2"),
            "width": ({"width": 3}, "damaged header"), "vocabulary": ({"vocab": 0}, "damaged header"),
            "count": ({"count": 101}, "states 101"), "huge": ({"count": 2 ** 63}, "header states"),
            "beyond": ({"vocab": 99}, "token 99"), "name": ({"name": b"x" * 96}, "damaged header")}
    for name, (change, words) in changes.items():
        folder = os.path.join(tmp, "bad-" + name)
        os.makedirs(folder)
        write_tokens(os.path.join(folder, "train.tokens"), good, **change)
        refused(tmp, words, *SMALL, "--data-path", folder, "-b", "1")
    for n, words in ((0, "at least 2"), (1, "at least 2")):
        folder = os.path.join(tmp, "short-%d" % n)
        os.makedirs(folder)
        write_tokens(os.path.join(folder, "train.tokens"), good[:n])
        refused(tmp, words, *SMALL, "--data-path", folder)
    folder = os.path.join(tmp, "cut")
    write(os.path.join(folder, "train.tokens"), b"DPTOKENS")
    refused(tmp, "shorter than its header", *SMALL, "--data-path", folder)


def bad_uses(tmp):
    folder = os.path.join(tmp, "fine")
    os.makedirs(folder)
    write_tokens(os.path.join(folder, "train.tokens"), list(range(200)))
    refused(tmp, "has tokens, but resnet20", "--model", "resnet20", "--data-path", folder)
    refused(tmp, "--vocab-size 100", *SMALL, "-b", "1", "--data-path", folder, "--vocab-size", "100")
    refused(tmp, "longer than the context", *SMALL, "-b", "1", "--data-path", folder, "--seq-len", "33")
    refused(tmp, "larger than the training set", *SMALL, "--data-path", folder, "-b", "8")
    refused(tmp, "were made with another one", *SMALL, "-b", "1", "--data-path", folder, "--tokenizer", os.path.join(HERE, "bpe"))
    refused(tmp, "not a flag of gpt2-124m", *SMALL, "-b", "1", "--data-path", folder, "--label-smoothing", "0.1")
    refused(tmp, "vocab.json", *SMALL, "--data-path", os.path.join(tmp, "texts"), "--tokenizer", os.path.join(tmp, "none"))
    empty = os.path.join(tmp, "empty")
    write(os.path.join(empty, "a.txt"), b"")
    refused(tmp, "too short", *SMALL, "--data-path", empty)
    p = dptrain("tokenize", "--data-path", folder, "--out", "o", cwd=tmp)
    check(p.returncode == 2 and "no text (*.txt" in p.stderr, "no text: %s" % p.stderr)


def without_val(tmp):
    """Tokens without an evaluation set are reported, once, if --val-split asks for one."""
    folder = os.path.join(tmp, "alone")
    os.makedirs(folder)
    write_tokens(os.path.join(folder, "train.tokens"), list(range(200)))
    flags = [*SMALL, "--data-path", folder, "-b", "1", "--max-steps", "2", "--backend", "ref", "--runs-dir", os.path.join(tmp, "runs"), "--nproc-per-node", "2"]
    for more, times in (((), 1), (("--val-split", "0"), 0)):
        p = dptrain(*flags, *more, cwd=tmp)
        check(p.returncode == 0 and p.stderr.count("has no val.tokens: nothing is evaluated") == times, "%s: %s" % (more, p.stderr))


def no_waiting(tmp):
    """A pipe in place of a file is reported at once."""
    for names, flags in ((("train.tokens",), SMALL), (("train-images-idx3-ubyte", "train-labels-idx1-ubyte"), ["--model", "resnet20"])):
        folder = os.path.join(tmp, "pipe-" + names[0])
        os.makedirs(folder)
        for name in names:
            os.mkfifo(os.path.join(folder, name))
        refused(tmp, "not a regular file", *flags, "--data-path", folder, "-b", "1")


def open_files(pid):
    for name in os.listdir("/proc/%d/fd" % pid):
        try:
            yield os.readlink("/proc/%d/fd/%s" % (pid, name))
        except OSError:
            pass  # closed in the meantime


def killed(tmp):
    """Partial tokens disappear with the process, if the filesystem has unnamed files."""
    folder = os.path.join(tmp, "large")
    os.makedirs(folder)
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY))
    except OSError as e:
        print("killed: not tested, the filesystem has no unnamed files: %s" % e)
        return
    with open(os.path.join(folder, "a.txt"), "wb") as f:
        f.truncate(1 << 30)
    p = subprocess.Popen([DPTRAIN, "tokenize", "--data-path", "large", "--out", "killed"], cwd=tmp, stderr=subprocess.DEVNULL)
    out, end = os.path.join(tmp, "killed"), time.monotonic() + 60
    while time.monotonic() < end and not any(out in path for path in open_files(p.pid)):
        time.sleep(0.01)
    p.kill()
    check(p.wait() < 0 and os.listdir(out) == [], "files left by a killed process: %s" % os.listdir(out))


def delivered(folder, *how):
    p = subprocess.run([DELIVER, folder, "batch=1", "text=1", *how], capture_output=True, text=True, timeout=100, check=False)
    return check(p.returncode == 0, "deliver %s: %s" % (how, p.stderr)) and p.stdout


def several(tmp):
    """Several token files of a split, divided anywhere between documents, equal the single file; windows cross their
    ends."""
    draw = random.Random(4)
    documents = [[draw.randrange(256) for _ in range(draw.randrange(1, 40))] for _ in range(60)]
    one, many = os.path.join(tmp, "one"), os.path.join(tmp, "many")
    for folder in (one, many):
        os.mkdir(folder)
    for split, all_ in (("train", documents[:50]), ("val", documents[50:])):
        write_documents("%s/%s.tokens" % (one, split), all_)
        for name, part in zip(("-000", "-001", "-01", "-1"), (all_[:3], [], all_[3:4], all_[4:])):
            write_documents("%s/%s%s.tokens" % (many, split, name), part)
    for how in (["shuffle=0"], ["shuffle=1", "workers=3", "epochs=2"], ["val=1", "shuffle=0"], ["pack=1", "shuffle=0"], ["pack=1", "seq_len=5"]):
        said = delivered(many, *how)
        check(said and said == delivered(one, *how), "several token files: a different stream than from one, %s" % how)
    flat = [t for d in documents[:50] for t in d]
    first = delivered(many, "shuffle=0", "seq_len=%d" % (len(flat) - 1)).splitlines()[0]
    check(first == "sample 0: %s | %s" % (" ".join(map(str, flat[:-1])), " ".join(map(str, flat[1:]))), "their tokens in order: %s" % first[:200])
    train = dptrain(*SMALL, "--data-path", "many", "-b", "4", "--max-steps", "2", "--threads", "1", "--runs-dir", os.path.join(tmp, "runs-many"), cwd=tmp)
    check(train.returncode == 0, "a training on them: %s" % train.stderr)
    for name, changes, words in (("train-zz.tokens", {"name": b"other"}, "train-zz.tokens: was made with another tokenizer than train-000.tokens"),
                              ("train.tokens", {}, "has both train.tokens and 4 files train-*.tokens"), ("val-zz.tokens", {"vocab": 300}, "val-zz.tokens: was made with another")):
        path = os.path.join(many, name)
        write_tokens(path, [1, 2, 3], **changes)
        p = subprocess.run([DELIVER, many], capture_output=True, text=True, timeout=100, check=False)
        check(p.returncode == 1 and words in p.stderr and len(p.stderr.splitlines()) == 1, "%s: %s" % (name, p.stderr))
        os.remove(path)
    write_tokens(os.path.join(many, "train-zz.tokens"), [1, 2, 3])
    p = subprocess.run([DELIVER, many, "pack=1"], capture_output=True, text=True, timeout=100, check=False)
    check("train-*.tokens: has no document ends" in p.stderr, "a file without document ends: %s" % p.stderr)


def foreign(tmp):
    """Token files of nanoGPT (nanoGPT#202, #422), llm.c and NumPy are known by their content, also where their size fits
    CIFAR-100 (allamo#17)."""
    draw = random.Random(6)
    llmc = lambda magic, version, kind, tokens: struct.pack("<256i", magic, version, len(tokens), *[0] * 253) + struct.pack("<%d%s" % (len(tokens), kind), *tokens)
    def numpy(tokens):
        head = "{'descr': '<u2', 'fortran_order': False, 'shape': (%d,), }" % len(tokens)
        return b"\x93NUMPY\1\0" + struct.pack("<H", 118) + head.encode().ljust(117) + b"\n" + struct.pack("<%dH" % len(tokens), *tokens)
    plain = lambda tokens: struct.pack("<%dH" % len(tokens), *tokens)
    chars, words = [draw.randrange(65) for _ in range(1537 * 40)], [draw.randrange(50257) for _ in range(3000)]
    for what, files, tokens, vocab in (
            ("nanoGPT", {"train.bin": plain(words), "val.bin": plain(words[:99])}, words, 50257),
            ("characters", {"train.bin": plain(chars), "val.bin": plain(chars[:99]),
                            "meta.pkl": b"\x80\x04\x95\x1e\0\0\0\0\0\0\0}\x94(\x8c\nvocab_size\x94KA\x8c\x04itos\x94}\x94u."}, chars, 65),
            ("llm.c", {"tiny_shakespeare_train.bin": llmc(20240520, 1, "H", words), "tiny_shakespeare_val.bin": llmc(20240520, 1, "H", words[:99])}, words, 50257),
            ("Llama 3", {"fineweb_train_000001.bin": llmc(20240801, 7, "I", [t + 70000 for t in words]), "fineweb_val_000000.bin": llmc(20240801, 7, "I", words[:99])},
             [t + 70000 for t in words], 128256),
            ("NumPy", {"edufineweb_train_000001.npy": numpy(words), "edufineweb_val_000000.npy": numpy(words[:99])}, words, 50257)):
        folder = os.path.join(tmp, "foreign-%s" % what.replace(" ", "-"))
        os.mkdir(folder)
        for name, data in files.items():
            with open(os.path.join(folder, name), "wb") as f:
                f.write(data)
        p = dptrain("inspect", "--data-path", folder, "--seq-len", "8", "--json", "--strict", cwd=tmp)
        said = json.loads(p.stdout) if check(p.returncode == 0, "%s: %s" % (what, p.stderr)) else {}
        first = [s["tokens"] for s in said.get("first", []) if s["split"] == "train"]
        check(sum(first, []) == tokens[:32] and said["format"] == "tokens", "%s: %s" % (what, first))
        check(said["samples"] == {"train": -(-(len(tokens) - 1) // 8), "val": 13}, "%s: %s" % (what, said["samples"]))
        p = dptrain("inspect", "--data-path", folder, cwd=tmp)
        check("vocabulary of %d" % vocab in p.stdout, "%s: %s" % (what, p.stdout))
        p = dptrain("--data-path", folder, "--model", "resnet20", "-b", "2", "--max-steps", "1", cwd=tmp)
        check(p.returncode == 2 and "has tokens, but resnet20 is a model of images" in p.stderr, "%s: %s" % (what, p.stderr))
    p = dptrain(*SMALL, "--data-path", "foreign-characters", "-b", "4", "--max-steps", "2", "--threads", "1", "--runs-dir", os.path.join(tmp, "runs-foreign"), cwd=tmp)
    check(p.returncode == 0 and "vocabulary of 65" in p.stdout, "a training on characters: %s" % p)


def fields(tmp):
    """The member with the text is named to training and inspection, too; one that is missing is answered with those that there are.
    Nulls are counted in the account of the texts, of a second opening, and of the token files."""
    folder = os.path.join(tmp, "fields")
    os.mkdir(folder)
    with open(os.path.join(folder, "train.jsonl"), "w", encoding="utf-8") as f:
        for i in range(50):
            f.write(json.dumps({"id": i, "content": None if i % 5 == 2 else "the quick brown fox %d" % i, "meta": {"note": "x"}, "score": (1, float("nan"), float("-inf"))[i % 3]}) + "\n")
    run = [*SMALL, "-b", "4", "--max-steps", "1", "--threads", "1", "--runs-dir", os.path.join(tmp, "runs-fields")]
    for command in (["train", *run], ["inspect"], ["plan", *SMALL, "-b", "4"]):
        p = dptrain(*command, "--data-path", folder, cwd=tmp)
        check(p.returncode == 2 and "train.jsonl:1: has no string member text: use --text-field with one of: content, meta.note" in p.stderr,
              "%s: %s" % (command[0], p.stderr))
        for _ in range(2):
            p = dptrain(*command, "--data-path", folder, "--text-field", "content", cwd=tmp)
            check(p.returncode == 0 and "left out 10 samples: content is null (train.jsonl:3)" in p.stdout + p.stderr, "%s: %s" % (command[0], p))
    p = dptrain("inspect", "--data-path", folder, "--text-field", "content", "--strict", cwd=tmp)
    check(p.returncode == 2 and "left out 10 samples" in p.stderr, "strict: %s" % p)
    p = dptrain("tokenize", "--data-path", folder, "--text-field", "content", "--out", "fields.tokens", cwd=tmp)
    check("of 40 documents" in p.stdout and "left out 10 samples: content is null" in p.stdout, "tokenize: %s" % p)
    p = dptrain("inspect", "--data-path", "fields.tokens", cwd=tmp)
    check(p.returncode == 0 and "left out 10 samples: content is null" in p.stdout, "token files: %s" % p)
    p = dptrain("train", *run, "--data-path", "fields.tokens", "--text-field", "content", cwd=tmp)
    check(p.returncode == 2 and "--text-field: fields.tokens has tokens already: omit it" in p.stderr, "tokens with the flag: %s" % p.stderr)


def main():
    with tempfile.TemporaryDirectory(prefix="dptrain-tokens-") as tmp:
        as_bytes(tmp)
        as_bpe(tmp)
        on_texts(tmp)
        bad_files(tmp)
        bad_uses(tmp)
        without_val(tmp)
        no_waiting(tmp)
        killed(tmp)
        several(tmp)
        foreign(tmp)
        fields(tmp)
    print("tokens: %s" % ("%d checks failed" % len(failures) if failures else "passed"))
    sys.exit(1 if failures else 0)


main()
