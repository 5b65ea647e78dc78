#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversations in Parquet files that pyarrow writes, in every way that is read (pages and row groups of all sizes,
dictionaries, compressions, nulls): rows of lists and structs equal pyarrow's, and the tokens of conversations those of
the same records as JSON lines. Skipped where pyarrow cannot be installed."""
import glob
import json
import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "bench"), os.path.join(HERE, "..", "..", "train")]
from helper import BUILD, check, dptrain, finish  # noqa: E402
import packages  # noqa: E402
import small_tokenizer  # noqa: E402

COLUMNS = os.path.join(BUILD, "tests", "data", "formats", "columns")
WORDS = ["one", "two", "\u00e9\u4e2d", "\U0001f600", "\"\\\n\t", ""]
FLAT = {"conversations": lambda d: {"conversations": [{"from": "human", "value": text(d)}, {"from": "gpt", "value": text(d)}]},
        "instruction": lambda d: {"instruction": text(d), "input": d.choice([None, text(d)]), "output": text(d)},
        "prompt": lambda d: {"prompt": text(d), "completion": text(d)}}


def text(draw):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randrange(1, 9)))


def without_null(value):
    """Members that are null are left out; elements of lists are not."""
    if isinstance(value, dict):
        return {k: without_null(v) for k, v in value.items() if v is not None}
    return [without_null(v) for v in value] if isinstance(value, list) else value


def write(draw, table, path):
    import pyarrow.parquet as pq
    pq.write_table(table, path, compression=draw.choice(["none", "snappy", "zstd", "gzip"]), use_dictionary=draw.random() < 0.5,
                   data_page_version=draw.choice(["1.0", "2.0"]), row_group_size=draw.choice([1, 7, 100, 10 ** 6]),
                   data_page_size=draw.choice([10, 300, 1 << 20]), write_batch_size=draw.choice([1, 10, 1000]))


def rows(seed, path):
    """Random values of a schema with lists in lists, structs, all types, and nulls at each level."""
    import pyarrow as pa
    draw = random.Random(seed)
    inner = pa.struct([("a", pa.string()), pa.field("b", pa.int64(), nullable=False), ("c", pa.list_(pa.string()))])
    schema = pa.schema([("s", pa.list_(inner)), ("n", pa.list_(pa.list_(pa.int32()))), ("r", pa.float64()), ("t", pa.bool_()),
                        ("deep", pa.struct([("x", pa.struct([("y", pa.list_(pa.struct([("z", pa.list_(pa.bool_()))])))]))])),
                        pa.field("must", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False)])

    def some(make, most=4, null=0.2):
        return None if draw.random() < null else [make() for _ in range(draw.randrange(most))]

    def maybe(make):
        return None if draw.random() < 0.2 else make()
    made = [{"s": some(lambda: maybe(lambda: {"a": maybe(lambda: text(draw)), "b": draw.randrange(-9, 9), "c": some(lambda: maybe(lambda: text(draw)))})),
             "n": some(lambda: some(lambda: maybe(lambda: draw.randrange(-2 ** 31, 2 ** 31)))), "r": maybe(draw.random), "t": maybe(lambda: draw.random() < 0.5),
             "deep": maybe(lambda: {"x": maybe(lambda: {"y": some(lambda: maybe(lambda: {"z": some(lambda: maybe(lambda: True))}))})}),
             "must": some(lambda: text(draw), null=0)} for _ in range(draw.choice([1, 50, 400]))]
    write(draw, pa.Table.from_pylist(made, schema), path)
    p = subprocess.run([COLUMNS, path, "records"], capture_output=True, text=True, check=False)
    got, want = p.stdout.splitlines(), [without_null(r) for r in made]
    if check(p.returncode == 0 and len(got) == len(want), "%d: %d rows of %d: %s%s" % (seed, len(got), len(want), p.stderr, got[-1:])):
        for i, (line, row) in enumerate(zip(got, want)):
            if not check(json.loads(line) == row, "%d: row %d: %s, wanted %s" % (seed, i, line, row)):
                break


def tokens_of(folder, tokenizer, name, *flags):
    p = dptrain("inspect", "--tokenizer", tokenizer, "--chat-template", "chatml", "--data-path", os.path.join(folder, name), "--val-split", 0, *flags)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (name, p.returncode, p.stderr)):
        return None, ""
    made = max(glob.glob(os.path.join(folder, ".*", "*", "train.tokens")), key=os.path.getmtime)
    with open(made, "rb") as f:
        return f.read(), p.stdout.replace(name, "NAME")


def message(draw, role):
    made = {"role": role, "content": text(draw)}
    if draw.random() < 0.3:
        made["weight"] = draw.randrange(2)
    if draw.random() < 0.2:
        made.update(content=None, tool_calls=[{"type": "function", "function": {"name": text(draw), "arguments": {"a": 1}}}])
    return made


def messages(draw):
    if draw.random() < 0.1:
        return draw.choice([{"messages": None}, {"messages": []}, {"messages": [{"role": "wizard", "content": "a"}]}])
    return {"messages": [message(draw, role) for _ in range(draw.randrange(1, 4)) for role in ("user", "assistant")]}


def conversations(seed, form, tmp, tokenizer):
    import pyarrow as pa
    draw = random.Random(seed)
    folder = os.path.join(tmp, "%s-%d" % (form, seed))
    os.makedirs(folder)
    records = [{"id": 0, **FLAT[form](draw)} if form in FLAT else messages(draw) for _ in range(draw.choice([5, 60, 300]))]
    records[0] = FLAT[form](draw) if form in FLAT else {"messages": [message(draw, "user"), {"role": "assistant", "content": "three"}]}
    with open(os.path.join(folder, "x.jsonl"), "w", encoding="utf-8") as f:
        f.write("".join(json.dumps(without_null(r)) + "\n" for r in records))
    want = tokens_of(folder, tokenizer, "x.jsonl")
    write(draw, pa.Table.from_pylist(records), os.path.join(folder, "x.parquet"))
    got = tokens_of(folder, tokenizer, "x.parquet")
    check(got[0] == want[0], "%s %d: other tokens than of JSON lines" % (form, seed))
    check(got[1].replace("parquet", "jsonl") == want[1], "%s %d: %s\nwanted %s" % (form, seed, got[1], want[1]))


def bad(tmp, tokenizer):
    """One line says what is wrong; a table without conversations is read as before."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    path = os.path.join(tmp, "bad.parquet")

    def refused(title, words, *flags, command="inspect"):
        p = dptrain(command, "--tokenizer", tokenizer, "--data-path", path, *flags)
        lines = p.stderr.strip().split("\n")
        check(p.returncode == 2 and all(w in lines[-1] for w in words), "%s: expected %s: exit %d: %s" % (title, words, p.returncode, p.stderr))
    pq.write_table(pa.table({"messages": pa.array([[{"role": b"user", "content": c}] for c in (b"a", b"\xff")])}), path)
    refused("not UTF-8", ["bad.parquet", "row 1", "content", "not UTF-8"], "--chat-template", "chatml")
    pq.write_table(pa.table({"text": ["a"], "id": [1]}), path)
    refused("no conversations", ["bad.parquet", "text"])
    pq.write_table(pa.table({"messages": pa.array([[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]])}), path)
    refused("tokenize", ["no text column text", "conversations"], "--out", os.path.join(tmp, "out"), command="tokenize")
    with open(path, "r+b") as f:
        f.seek(40)
        f.write(b"\xff" * 20)
    refused("damaged", ["bad.parquet"], "--chat-template", "chatml")


def main():
    if len(sys.argv) == 1:
        try:
            python = packages.python(BUILD, "tables", ["pyarrow==26.0.1"])
        except packages.Unavailable as why:
            print(why)
            sys.exit(77)
        sys.exit(subprocess.run([python, __file__, "run"], check=False).returncode)
    with tempfile.TemporaryDirectory() as tmp:
        tokenizer = os.path.join(tmp, "tokenizer")
        os.makedirs(tokenizer)
        small_tokenizer.write_tokenizer(tokenizer, ["one", "\u0120two"], ["<|im_start|>", "<|im_end|>", "</s>"], eos_token="</s>")
        for seed in range(60):
            rows(seed, os.path.join(tmp, "x.parquet"))
        for form in ("messages", *FLAT):
            for seed in range(6):
                conversations(seed, form, tmp, tokenizer)
        bad(tmp, tokenizer)
    finish("chat_tables")


main()
