# SPDX-License-Identifier: Apache-2.0
"""dptrain sample: at temperature 0 each token is the likeliest one in a full evaluation, so the KV cache gives the
results of full attention; the same on cpu; seeds, contexts that are full, foreign and unusable files."""
import glob
import json
import math
import os
import struct
import subprocess

from helper import DPTRAIN, Folder, check, dptrain, environment, finish, safetensors

SIZES = ["--n-layer", 2, "--n-head", 3, "--n-embd", 24]
PROMPT = "whether it is nobler in the mind to suffer the slings"
CONTEXT = 80


def write_safetensors(path, tensors, meta=None):
    """tensors: {name: (dtype, shape, bytes)}."""
    head, at = {"__metadata__": meta} if meta else {}, 0
    for name, (dtype, shape, data) in tensors.items():
        head[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(head).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for _, _, data in tensors.values():
            f.write(data)


def train(tmp):
    os.makedirs(os.path.join(tmp, "texts"))
    with open(os.path.join(tmp, "texts", "a.txt"), "w", encoding="ascii") as f:
        f.write("To be, or not to be, that is the question:\n" + PROMPT + "\nand arrows of outrageous fortune\n" * 20)
    weights = os.path.join(tmp, "w.safetensors")
    p = dptrain("--model", "gpt2-124m", *SIZES, "--block-size", CONTEXT, "--data-path", os.path.join(tmp, "texts"), "-b", 2,
                "--max-steps", 4, "--lr", 0.5, "--backend", "ref", "--runs-dir", os.path.join(tmp, "runs"), "--save-weights", weights)
    check(p.returncode == 0, "training: exit %d: %s" % (p.returncode, p.stderr))
    with open(os.path.join(tmp, "config.json"), encoding="ascii") as f:
        c = json.load(f)
    check(c["model_type"] == "gpt2" and (c["n_layer"], c["n_head"], c["n_embd"], c["n_positions"], c["vocab_size"]) == (2, 3, 24, CONTEXT, 256),
          "config.json next to the weights: %s" % c)
    return weights


def sample(weights, *flags, code=0, words=None):
    p = subprocess.run([DPTRAIN, "sample", "--init-from", weights, *map(str, flags)], env=environment(), timeout=100, capture_output=True,
                       encoding="latin-1")
    ok = p.returncode == code and (words is None or words in p.stderr)
    check(ok, "sample %s: exit %d, %r expected: %s" % (" ".join(map(str, flags)), p.returncode, words, p.stderr))
    return p.stdout[:-1]


def likeliest(tmp, weights):
    said = sample(weights, "--prompt", PROMPT, "--max-tokens", 20, "--temperature", 0, "--backend", "ref")
    tokens = list(said.encode("latin-1"))
    if not check(said.startswith(PROMPT) and len(tokens) == len(PROMPT) + 20, "a prompt and 20 tokens: %r" % said):
        return
    batch, out = os.path.join(tmp, "b.safetensors"), os.path.join(tmp, "o.safetensors")
    write_safetensors(batch, {"tokens": ("I64", [1, len(tokens)], struct.pack("<%dq" % len(tokens), *tokens))})
    p = dptrain("--model", "gpt2-124m", *SIZES, "--block-size", CONTEXT, "--vocab-size", 256, "--batch-from", batch, "--init-from", weights,
                "--backend", "ref", "--test-only", "--save-outputs", out)
    if not check(p.returncode == 0, "evaluation: exit %d: %s" % (p.returncode, p.stderr)):
        return
    logits = safetensors(out)["logits"][1]
    for i in range(len(PROMPT) - 1, len(tokens) - 1):
        row = logits[i * 256:(i + 1) * 256]
        check(row[tokens[i + 1]] >= max(row) - 1e-12, "token %d is the likeliest" % (i + 1))
    check(sample(weights, "--prompt", PROMPT, "--max-tokens", 20, "--temperature", 0, "--backend", "cpu") == said, "the same text on cpu")
    low = sample(weights, "--prompt", PROMPT, "--max-tokens", 20, "--temperature", 0, "--backend", "cpu", "--precision", "fp16")
    check(low.startswith(PROMPT) and len(low) == len(said), "weights kept in 16 bits: %r" % low)


def draws(weights):
    flags = ["--prompt", "To ", "--max-tokens", 150, "--backend", "ref"]
    a, b, c = (sample(weights, *flags, "--seed", s) for s in (1, 1, 2))
    check(a == b and a != c, "the seed determines the text")
    check(sample(weights, *flags, "--top-k", 1, "--seed", 3) == sample(weights, *flags, "--temperature", 0), "the top 1 is the likeliest")
    check(sample(weights, "--max-tokens", 0, "--prompt", "x") == "x", "nothing to add")
    check(sample(weights, "--max-tokens", 3, "--backend", "ref").startswith("\n"), "without a prompt the text starts a line")
    long = "to be or not to be " * 10
    check(len(sample(weights, "--prompt", long, "--max-tokens", 5, "--temperature", 0)) == len(long) + 5, "a prompt longer than the context")


def unfit(tmp, weights):
    kinds = {"F32": "f", "F64": "d"}
    foreign = os.path.join(tmp, "foreign", "w.safetensors")
    os.makedirs(os.path.dirname(foreign))
    tensors = safetensors(weights)
    plain = {k[len("transformer."):]: ("F64", s, struct.pack("<%dd" % len(v), *v)) for k, (s, v) in tensors.items()}
    plain["h.0.attn.bias"] = ("F32", [1, 1, 2, 2], struct.pack("<4" + kinds["F32"], 1, 0, 1, 1))
    write_safetensors(foreign, plain)
    sample(foreign, "--prompt", "a", code=2, words="add --n-head N")
    sample(foreign, "--prompt", "a", "--n-head", 3, code=2, words="--tokenizer bytes or")
    said = sample(foreign, "--prompt", "a", "--n-head", 3, "--tokenizer", "bytes", "--temperature", 0, "--max-tokens", 9)
    check(said == sample(weights, "--prompt", "a", "--temperature", 0, "--max-tokens", 9), "names without the prefix are the same model")
    sample(foreign, "--prompt", "a", "--n-head", 5, "--tokenizer", "bytes", code=2, words="5 heads")
    sample(weights, "--tokenizer", os.path.join(tmp, "none"), code=2, words="vocab.json")
    sample(os.path.join(tmp, "b.safetensors"), code=2, words="is not a GPT-2")
    sample(os.path.join(tmp, "missing"), code=2, words="missing")
    spoilt = dict(plain, **{"wpe.weight": ("F64", plain["wpe.weight"][1], struct.pack("<d", math.inf) + plain["wpe.weight"][2][8:])})
    write_safetensors(foreign, spoilt, {"heads": "3", "tokenizer": "bytes"})
    sample(foreign, "--prompt", "a", code=2, words="not finite")
    p = dptrain("sample", "--prompt", "a")
    check(p.returncode == 2 and "--init-from" in p.stderr, "no weights: %s" % p.stderr)
    plain["lm_head.weight"] = ("F64",) + plain["wte.weight"][1:]
    write_safetensors(foreign, plain, {"heads": "3", "tokenizer": "bytes"})
    check(sample(foreign, "--prompt", "a", "--temperature", 0, "--max-tokens", 9) == said, "a head equal to the table counts as tied")


def damaged(tmp):
    """A checkpoint whose weights differ from those written is refused; the file alone is accepted."""
    folder, = glob.glob(os.path.join(tmp, "runs", "*", "*", "checkpoints", "step-4"))
    sample(folder, "--prompt", "a", "--max-tokens", 1)
    file = os.path.join(folder, "model.safetensors")
    with open(file, "r+b") as f:
        f.seek(-4, os.SEEK_END)
        f.write(b"\0\0\0\1")
    sample(folder, "--prompt", "a", code=2, words="its checksum is wrong")
    sample(file, "--prompt", "a", "--max-tokens", 1)
    with open(os.path.join(folder, "state.json"), "w", encoding="ascii") as f:
        f.write("{")
    sample(folder, "--prompt", "a", code=2, words="state.json")


def main():
    with Folder() as tmp:
        weights = train(tmp)
        damaged(tmp)
        likeliest(tmp, weights)
        draws(weights)
        unfit(tmp, weights)
    finish("sample")


main()
