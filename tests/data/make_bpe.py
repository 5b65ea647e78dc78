# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/bpe: a small byte-level BPE and the reference implementation's tokens of difficult texts.

    pip install tokenizers==0.23.3
    python3 make_bpe.py

Characters are those in Unicode 14 (an older or newer table would classify some of the others differently).
"""
import json
import os
import random
import unicodedata

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bpe")
TEXTS = ["/usr/share/common-licenses/GPL-3", "/usr/share/common-licenses/Artistic"]
SPACES = "\n\t\r\v\f\u00a0\u2003\u3000\u1680\u2028\x85\x1c\x1f\u200b\u180e\ufeff"


def mixed(seed, n):
    draw = random.Random(seed)
    known = [c for c in range(0x80, 0x20000) if not 0xD800 <= c < 0xE000 and unicodedata.category(chr(c)) != "Cn"]
    kinds = [lambda: draw.choice("abcdefghijklmnopqrstuvwxyzABC"), lambda: " ", lambda: draw.choice(SPACES),
             lambda: draw.choice("'s 't 're 've 'm 'll 'd 'S 'x '".split(" ")), lambda: draw.choice("0123456789½²٣"),
             lambda: draw.choice("!?.,;:-_()[]{}<>|/\\\"@#$%^&*~`’…—"), lambda: chr(draw.choice(known))]
    return "".join(draw.choices(kinds, [35, 15, 10, 10, 10, 10, 10])[0]() for _ in range(n))


def main():
    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<|endoftext|>"], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    bpe.train(TEXTS, trainer)
    bpe.model.save(HERE)
    with open(TEXTS[1], encoding="ascii") as f:
        words = f.read()
    texts = [words[:2000], mixed(1, 2500), "the" * 700, " " * 300 + "a" + "\n" * 7 + " b  c   d\t\te ", "don't they'll I'm we've 'tis"]
    plain = Tokenizer(models.BPE.from_file(os.path.join(HERE, "vocab.json"), os.path.join(HERE, "merges.txt")))
    plain.pre_tokenizer = bpe.pre_tokenizer
    with open(os.path.join(HERE, "golden.json"), "w", encoding="ascii") as out:
        json.dump([{"text": t, "tokens": plain.encode(t).ids} for t in texts], out, separators=(",", ":"))
        out.write("\n")


if __name__ == "__main__":
    main()
