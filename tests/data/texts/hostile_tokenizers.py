#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokenizer.json of strangers: what is damaged, too large or not supported is refused in one line that names the file and the part;
patterns and normalizers that would take hours or all memory end in one line that names the text. A sound one, built from
tests/data/bpe, has the reference's tokens."""
import json
import os
import resource
import struct
import subprocess
import sys
import tempfile
import time

HERE = os.path.join(os.environ.get("srcdir", "."), "tests", "data", "bpe")
DPTRAIN = os.path.join(os.path.abspath(os.environ.get("builddir", ".")), "dptrain")
MEMORY_KIB = 2 << 20
failures = []
with open(os.path.join(HERE, "vocab.json"), encoding="utf-8") as f:
    VOCAB = json.load(f)
with open(os.path.join(HERE, "merges.txt"), encoding="utf-8") as f:
    MERGES = f.read().splitlines()[1:]
with open(os.path.join(HERE, "golden.json"), encoding="ascii") as f:
    GOLDEN = json.load(f)


def check(ok, what):
    if not ok:
        failures.append(what)


def sound(**parts):
    model = {"type": "BPE", "vocab": VOCAB, "merges": MERGES, **parts.pop("model", {})}
    return {"added_tokens": [], "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False}, "model": model, **parts}


def tokenize(tokenizer, text):
    """tokenizer: the file as an object or as bytes. Returns the finished process and its tokens."""
    with tempfile.TemporaryDirectory(dir=tmp) as folder:
        os.mkdir(folder + "/model")
        with open(folder + "/model/tokenizer.json", "wb") as file:
            file.write(tokenizer if isinstance(tokenizer, bytes) else json.dumps(tokenizer).encode())
        with open(folder + "/text.txt", "wb") as file:
            file.write(text)
        began = time.monotonic()
        done = subprocess.run([DPTRAIN, "tokenize", "--data-path", "text.txt", "--tokenizer", "model", "--val-split", "0", "--out", "out"], cwd=folder,
                              capture_output=True, text=True, timeout=120, check=False)
        done.seconds, tokens = time.monotonic() - began, []
        if not done.returncode:
            with open(folder + "/out/train.tokens", "rb") as file:
                raw = file.read()
            width, _, count = struct.unpack_from("<IQQ", raw, 12)
            tokens = list(struct.unpack_from("<%d%s" % (count, "H" if width == 2 else "I"), raw, 128))
    return done, tokens


def refused(name, words, tokenizer, text=b"the text of a test\n"):
    done, _ = tokenize(tokenizer, text)
    check(done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1 and done.seconds < 30,
          "%s: exit %d after %.1f s, expected 2 and %r: %s" % (name, done.returncode, done.seconds, words, done.stderr[:600]))


def split(pattern, **more):
    parts = [{"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False, **more},
             {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}]
    return sound(pre_tokenizer={"type": "Sequence", "pretokenizers": parts})


def added(content, number, **more):
    return sound(added_tokens=[{"id": number, "content": content, "special": True, "normalized": False, **more}])


def refuse_files():
    whole = json.dumps(sound()).encode()
    refused("a cut file", "tokenizer.json:1: is not a JSON object", whole[:len(whole) // 2])
    refused("an empty file", "is not a JSON object", b"")
    refused("a list", "is not a JSON object", b"[1, 2]")
    refused("depth", "is not a JSON object", b'{"a":' * 5000)
    refused("no UTF-8", "is not a JSON object", b'{"a": "\xff\xfe"}')
    refused("a pointer", "git lfs pull", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
    refused("another model", "type 'Unigram' is not supported: expected BPE", sound(model={"type": "Unigram"}))
    refused("dropout", "dropout", sound(model={"dropout": 0.1}))
    for part, kind in (("normalizer", "Lowercase"), ("pre_tokenizer", "Whitespace"), ("post_processor", "Bert\nX"), ("decoder", "CTC")):
        refused(part, part + ": ", sound(**{part: {"type": kind}}))


def refuse_numbers():
    for n in (-1, 1 << 22, 1 << 31, 1 << 62):
        refused("token %d" % n, "tokenizer.json: ", sound(model={"vocab": {**VOCAB, "new": n}}))
        refused("added token %d" % n, "tokenizer.json: ", added("<x>", n))
    refused("a number twice", "unique numbers", sound(model={"vocab": {**VOCAB, "new": 5}}))
    refused("a text for a number", "unique numbers", sound(model={"vocab": {**VOCAB, "new": "5"}}))
    refused("a merge of strangers", "merge 0", sound(model={"merges": ["q zzzz"]}))
    refused("half a merge", "merge 0", sound(model={"merges": [["q"]]}))
    refused("no text", "added_tokens", added("", 600))


def refuse_patterns():
    refused("syntax", "pattern: ", split("(a"))
    refused("empty matches", "matches the empty text", split("a*"))
    refused("a call", "pattern: the group", split("(?R)a"))
    refused("size", "pattern: ", split("(?:(?:a{1000}){1000}){1000}"))
    refused("depth of groups", "pattern: ", split("(" * 10000 + "a" + ")" * 10000))
    refused("backtracking", "text.txt: the tokenizer's pattern needs too many steps", split("(?:a+)+[bd]"), b"a" * 100000 + b"c")
    refused("backtracking of choices", "text.txt: the tokenizer's pattern needs too many steps", split("(?:a|aa)+(?=b)"), b"a" * 100000 + b"c")
    refused("backtracking in a normalizer", "text.txt: the tokenizer's pattern needs too many steps",
            sound(normalizer={"type": "Replace", "pattern": {"Regex": "(?:a+)+[bd]"}, "content": "x"}), b"a" * 100000 + b"c")
    grows = {"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 64}
    refused("growth", "text.txt: the tokenizer's normalizer makes a text larger than", sound(normalizer={"type": "Sequence", "normalizers": [grows] * 8}), b"a" * 1000)
    refused("too many splits", "too many splits", sound(pre_tokenizer={"type": "Sequence", "pretokenizers": [{"type": "Digits"}] * 99}))


def accept_large():
    """300,000 added tokens, a word of 2 MB."""
    names = [{"id": 600 + i, "content": "<%d>" % i, "special": True, "normalized": False} for i in range(300000)]
    done, tokens = tokenize(sound(added_tokens=names), b"<7><299999>")
    check(tokens[1:] == [607, 300599], "300,000 added tokens: exit %d: %s %s" % (done.returncode, tokens, done.stderr[:300]))
    done, tokens = tokenize(sound(), b"a" * 2000000)
    check(done.returncode == 0 and done.seconds < 30, "a long word: exit %d: %s" % (done.returncode, done.stderr[:300]))


with tempfile.TemporaryDirectory(prefix="dptrain-tokenizers-") as tmp:
    for i, g in enumerate(GOLDEN):
        check(tokenize(sound(), g["text"].encode())[1] == [VOCAB["<|endoftext|>"]] + g["tokens"], "text %d has the reference's tokens" % i)
    word = "\uc5b4\u11a7 \uc5b4\u11a7\u0301".encode()  # utf8proc 2.6 would drop U+11A7
    check(tokenize(sound(normalizer={"type": "NFC"}), word)[1] == tokenize(sound(), word)[1] != [], "NFC keeps a text that is in this form")
    refuse_files()
    refuse_numbers()
    refuse_patterns()
    accept_large()
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
check(peak < MEMORY_KIB, "the largest took %d KiB" % peak)
for failure in failures:
    print("FAILED: " + failure)
print("hostile_tokenizers: %s" % ("%d checks failed" % len(failures) if failures else "passed"))
sys.exit(bool(failures))
