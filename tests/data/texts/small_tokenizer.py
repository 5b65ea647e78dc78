# SPDX-License-Identifier: Apache-2.0
"""A tokenizer.json of which each byte is a token, and so are some pieces."""
import json
import os


def write_tokenizer(folder, pieces, special, **config):
    """pieces: as ByteLevel shows them (a space is \u0120). Returns the texts of the files by name."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    shown = [chr(b) for b in plain] + [chr(256 + i) for i in range(256 - len(plain))]
    vocab, merges = {c: i for i, c in enumerate(shown)}, []
    for piece in pieces:
        for end in range(2, len(piece) + 1):
            if piece[:end] not in vocab:
                vocab[piece[:end]] = len(vocab)
                merges.append([piece[:end - 1], piece[end - 1]])
    added = [{"id": len(vocab) + i, "content": s, "special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
             for i, s in enumerate(special)]
    own = {"version": "1.0", "added_tokens": added, "normalizer": None, "post_processor": None,
           "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
           "decoder": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
           "model": {"type": "BPE", "vocab": vocab, "merges": merges}}
    files = {"tokenizer.json": json.dumps(own), "tokenizer_config.json": json.dumps(config), "generation_config.json": '{"top_p": 0.5}'}
    for name, text in files.items():
        with open(os.path.join(folder, name), "w", encoding="ascii") as f:
            f.write(text)
    return files
