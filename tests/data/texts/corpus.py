#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same documents as .txt, JSON lines and Parquet, plain and compressed, in folders and in an object store, give
the same tokens, by bytes and by BPE; --pack documents splits no document that fits; damaged or missing input gives one
line."""
import gzip
import json
import os
import struct
import shutil
import subprocess
import sys
import tempfile

SRC = os.environ.get("srcdir", ".")
BUILD = os.path.abspath(os.environ.get("builddir", "."))
FORMATS = os.path.join(SRC, "tests", "data", "formats")
sys.path[:0] = [os.path.join(SRC, "tests", "data"), FORMATS]
import make_formats  # noqa: E402
import s3server  # noqa: E402

BPE = os.path.abspath(os.path.join(SRC, "tests", "data", "bpe"))
DELIVER = os.path.join(BUILD, "tests", "data", "deliver")


def run(*args, code=0, env=None, program=os.path.join(BUILD, "dptrain")):
    done = subprocess.run([program, *args], capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": f"{tmp}/cache", **(env or {})})
    assert done.returncode == code, (args, done)
    assert not code or len(done.stderr.splitlines()) == 1, done.stderr
    return done.stderr if code else done.stdout


def tokens(spec, *flags, env=None):
    """Returns both files as bytes; b"" for a missing one."""
    out = tempfile.mkdtemp(dir=tmp)
    said = run("tokenize", "--data-path", spec, "--out", out, *flags, env=env)
    files = []
    for name in ("train", "val"):
        path = f"{out}/{name}.tokens"
        files.append(b"")
        if os.path.exists(path):
            with open(path, "rb") as f:
                files[-1] = f.read()
    return files, said


def parsed(raw):
    """Returns tokens, separator and ends of documents."""
    width, vocab, count = struct.unpack_from("<IQQ", raw, 12)
    values = struct.unpack_from(f"<{count}{'H' if width == 2 else 'I'}", raw, 128)
    at = (128 + count * width + 7) // 8 * 8
    magic, separator, n = struct.unpack_from("<8sqQ", raw, at)
    assert magic == b"DPENDING" and vocab > separator and len(raw) == at + 24 + 8 * n, (magic, separator, n, len(raw))
    return values, separator, struct.unpack_from(f"<{n}Q", raw, at + 24)


def write(path, data):
    os.makedirs(os.path.dirname(f"{tmp}/{path}"), exist_ok=True)
    with open(f"{tmp}/{path}", "wb") as f:
        f.write(data)
    return f"{tmp}/{path}"


def sources(texts):
    """Yields one folder, file or address for each way to store the documents."""
    for i, t in enumerate(texts):
        write(f"txt/{i:05d}.txt", t.encode())
        write(f"gz/{i:05d}.txt.gz", gzip.compress(t.encode()[:20], 1) + gzip.compress(t.encode()[20:], 1))
    lines = "".join(json.dumps({"text": t, "n": [i, {"text": None}]}) + "\n" for i, t in enumerate(texts))
    write("lines/a.jsonl", lines.encode())
    write("linesgz/a.jsonl.gz", gzip.compress(("\n\n" + lines.rstrip("\n")).encode(), 1))
    return [f"{tmp}/txt", f"{tmp}/gz", f"{tmp}/lines", f"{tmp}/linesgz/a.jsonl.gz", f"{FORMATS}/texts.jsonl.zst", f"{FORMATS}/texts.parquet"]


def same_tokens(texts):
    places = sources(texts)
    for flags in (("--val-split", "0"), ("--tokenizer", BPE), ("--tokenizer", BPE, "--val-split", "0.5")):
        want, said = tokens(places[0], *flags)
        assert f"of {sum(map(bool, texts))} documents in {len(texts)} files" in said, said
        for place in places[1:]:
            assert tokens(place, *flags)[0] == want, (place, flags)
    whole, _ = tokens(places[0], "--val-split", "0")
    values, separator, ends = parsed(whole[0])
    assert separator == -1 and not whole[1] and bytes(values) == "".join(texts).encode()
    lengths = [len(t.encode()) for t in texts if t]
    assert [b - a for a, b in zip((0,) + ends, ends)] == lengths
    assert tokens(f"{FORMATS}/texts.jsonl.zst", "--val-split", "0", "--text-field", "meta.body")[0] == whole
    assert tokens(f"{tmp}/txt/{{00001..00003}}.txt::{tmp}/lines", "--val-split", "0")[1].count("4 files") == 1
    store(whole, texts)
    return lengths


def store(whole, texts):
    """Signed with the only secret; the folder's val-… and val/… are for evaluation."""
    with open(f"{FORMATS}/texts.jsonl.zst", "rb") as f:
        write("s3/bucket/all/train.jsonl.zst", f.read())
    write("s3/bucket/parts/train-0.jsonl", json.dumps({"text": texts[6]}).encode())
    write("s3/bucket/parts/val/0.txt", b"and a folder below")
    write("s3/bucket/parts/val-0.txt", texts[7].encode())
    server = s3server.S3(f"{tmp}/s3")
    env = server.environment()
    assert tokens("s3://bucket/all", "--val-split", "0", env=env)[0] == whole
    parts, _ = tokens("s3://bucket/parts", env=env)
    assert [bytes(parsed(p)[0]).decode() for p in parts] == [texts[6], texts[7] + "and a folder below"]
    refused("403", "s3://bucket/all", env={**env, "AWS_SECRET_ACCESS_KEY": "wrong"})


def samples(folder, seq_len):
    """Tokens and targets of every training sample, as delivered, in the set's order."""
    said = run(folder, f"seq_len={seq_len}", "pack=1", "shuffle=0", "batch=1", "text=1", program=DELIVER)
    rows = [line.split(": ", 1)[1].split(" | ") for line in said.splitlines() if line.startswith("sample ")]
    return [([int(v) for v in tokens_.split()], [int(v) for v in targets.split()]) for tokens_, targets in rows]


def packed(seq_len, *flags):
    out = tempfile.mkdtemp(dir=tmp)
    run("tokenize", "--data-path", f"{tmp}/short", "--out", out, "--val-split", "0", *flags)
    with open(f"{out}/train.tokens", "rb") as f:
        values, separator, ends = parsed(f.read())
    documents = [values[a:b] for a, b in zip((0,) + ends, ends)]
    want = []  # allowed contents of a sample: tokens and their targets
    for d in documents:
        for at in range(0, len(d), seq_len):
            part = d[at:at + seq_len]
            follows = list(d[at + 1:at + seq_len + 1])
            targets = tuple(follows + [separator] * (len(part) - len(follows)))
            if any(t >= 0 for t in targets):
                want.append((part, targets))
    got = samples(out, seq_len)
    for tokens_, targets in got:
        at = 0
        while at < seq_len and (tokens_[at] or targets[at] >= 0):
            fits = [w for w in want if tuple(tokens_[at:at + len(w[0])]) == w[0] and tuple(targets[at:at + len(w[0])]) == w[1]]
            assert fits, (at, tokens_, targets)
            best = max(fits, key=lambda w: len(w[0]))
            want.remove(best)
            at += len(best[0])
        assert not any(tokens_[at:]) and set(targets[at:]) <= {-1}, (tokens_, targets)
    assert not want, f"{len(want)} pieces were lost"
    used = sum(min(len(d), seq_len) if len(d) <= seq_len else len(d) for d in documents)
    assert len(got) <= used / seq_len * 1.25 + 1, (len(got), used / seq_len)


def refused(words, spec, *flags, env=None):
    said = run("tokenize", "--data-path", spec, "--out", f"{tmp}/none", *flags, code=2, env=env)
    assert words in said, (words, said)
    assert not os.path.exists(f"{tmp}/none/train.tokens")


def bad():
    cases = {"{\"text\": \"a\"}\n[1]\n": ":2: is not a JSON object", "{\"text\": \"a\"\n": ":1: is not a JSON object",
             "{\"text\": 3}": "no string member text", "{\"t\": \"a\"}": "--text-field", "{\"text\": \"a\x01\"}": "is not a JSON object",
             "{\"text\": \"\\ud83\"}": "is not a JSON object", "[" * 100000: "is not a JSON object", "{\"a\": " + "[" * 100000: "is not a JSON object",
             "{\"text\": \"a\"} x": "is not a JSON object"}
    for i, (text, words) in enumerate(cases.items()):
        refused(words, write(f"bad/{i}.jsonl", text.encode()))
    good = gzip.compress(os.urandom(5000))
    refused("is truncated", write("bad/cut.txt.gz", good[:-20]))
    refused("is not a gzip file", write("bad/none.txt.gz", b"x" * 100))
    refused("is not a zstd file", write("bad/none.txt.zst", b"x" * 100))
    with open(f"{FORMATS}/texts.jsonl.zst", "rb") as f:
        refused("is truncated", write("bad/cut.jsonl.zst", f.read()[:-7]))
    refused("no text column body: use --text-field with one of: text, meta.url", f"{FORMATS}/texts.parquet", "--text-field", "body")
    refused("is not a text", write("bad/x.tar", b"x"))
    refused("No such file", f"{tmp}/nothing.txt")
    refused("too short", write("bad/empty.txt.gz", gzip.compress(b"")))
    os.makedirs(f"{tmp}/empty/deep")
    refused("no text (*.txt", f"{tmp}/empty")
    shutil.copy(f"{FORMATS}/texts.parquet", f"{tmp}/alone.parquet")  # a cache would be made beside it
    said = run("train", "--model", "gpt2-124m", "--data-path", f"{tmp}/alone.parquet", "--max-steps", "1", "--runs-dir", tmp, code=2)
    assert "tokenize texts with dptrain tokenize" in said, said
    # Escapes, and lone surrogates, as Python reads them.
    line = r'{"x": -1.5e+3, "text": "\u00e9\ud83d\ude42 \ud83d. \/\"\\\b\f\n\r\t"}'
    want = json.loads(line)["text"].encode("utf-8", "surrogatepass").replace("\ud83d".encode("utf-8", "surrogatepass"), "\ufffd".encode())
    got, _ = tokens(write("escapes/a.jsonl", line.encode()), "--val-split", "0")
    assert bytes(parsed(got[0])[0]) == want, (bytes(parsed(got[0])[0]), want)


def main():
    texts = make_formats.texts()
    same_tokens(texts)
    for i, t in enumerate(texts[:40]):
        write(f"short/{i:02d}.txt", t.encode()[:i * 9])
    for seq_len in (16, 100, 333):
        packed(seq_len)
        packed(seq_len, "--tokenizer", BPE)
    bad()
    print("corpus: passed")


def marks():
    """A UTF-8 byte order mark is no part of a text, a line or a vocabulary; a text in UTF-16 is refused."""
    mark, text = b"\xef\xbb\xbf", "Übermut, naïve\n".encode() * 40
    line = json.dumps({"text": text.decode()}).encode() + b"\n"
    want = tokens(write("unmarked/a.txt", text), "--val-split", "0")[0]
    split = tokens(f"{tmp}/unmarked/a.txt", "--val-split", "0.3")[0]
    for name, data in (("a.txt", mark + text), ("a.txt.gz", gzip.compress(mark[:2]) + gzip.compress(mark[2:] + text)), ("a.jsonl", mark + line),
                       ("a.ndjson", mark + line), ("a.jsonl.gz", gzip.compress(mark + line))):
        path = write(f"marked/{name}", data)
        assert tokens(path, "--val-split", "0")[0] == want, name
        assert name.startswith("a.j") or name == "a.ndjson" or tokens(path, "--val-split", "0.3")[0] == split, name
    run("tokenize", "--data-path", write("marked/empty/a.txt", mark), "--out", f"{tmp}/none", code=2)
    for encoding in ("utf-16-le", "utf-16-be"):
        said = run("tokenize", "--data-path", write("wide/a.txt", ("\ufeff" + text.decode()).encode(encoding)), "--out", f"{tmp}/wide-out", code=2)
        assert "a.txt: is UTF-16" in said and "iconv" in said, said
    for name in ("vocab.json", "merges.txt"):
        with open(f"{BPE}/{name}", "rb") as f:
            write(f"bpe/{name}", mark + f.read())
    assert tokens(f"{tmp}/unmarked/a.txt", "--val-split", "0", "--tokenizer", f"{tmp}/bpe")[0][0][128:] == \
        tokens(f"{tmp}/unmarked/a.txt", "--val-split", "0", "--tokenizer", BPE)[0][0][128:]


with tempfile.TemporaryDirectory(prefix="dptrain-corpus-") as tmp:
    marks()
    main()
