# SPDX-License-Identifier: Apache-2.0
"""dptrain sample: at temperature 0 each token is the likeliest one in a full evaluation, so the KV cache gives the
results of full attention; the same on cpu; also of decoders in folders of Hugging Face, which end at their own tokens;
seeds, contexts that are full, foreign and unusable files."""
import glob
import json
import math
import os
import struct
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, "hugging_face"), os.path.join(HERE, "..", "data", "texts")]
import folders  # noqa: E402
from helper import DPTRAIN, Folder, check, dptrain, environment, finish, safetensors  # noqa: E402
from small_tokenizer import write_tokenizer  # noqa: E402

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


def likeliest(tmp, weights, vocab, *flags):
    """flags: of the evaluation, which must know what the file does not say."""
    said = sample(weights, "--prompt", PROMPT, "--max-tokens", 20, "--temperature", 0, "--backend", "ref", "--tokenizer", "bytes")
    tokens = list(said.encode("latin-1"))
    if not check(said.startswith(PROMPT) and len(tokens) == len(PROMPT) + 20, "a prompt and 20 tokens: %r" % said):
        return said
    batch, out = os.path.join(tmp, "b.safetensors"), os.path.join(tmp, "o.safetensors")
    write_safetensors(batch, {"tokens": ("I64", [1, len(tokens)], struct.pack("<%dq" % len(tokens), *tokens))})
    p = dptrain(*flags, "--batch-from", batch, "--init-from", weights, "--backend", "ref", "--test-only", "--save-outputs", out)
    if not check(p.returncode == 0, "evaluation: exit %d: %s" % (p.returncode, p.stderr)):
        return said
    logits = safetensors(out)["logits"][1]
    for i in range(len(PROMPT) - 1, len(tokens) - 1):
        row = logits[i * vocab:i * vocab + 256]
        check(row[tokens[i + 1]] >= max(row) - 1e-12, "token %d is the likeliest" % (i + 1))
    cpu = ["--prompt", PROMPT, "--max-tokens", 20, "--temperature", 0, "--backend", "cpu", "--tokenizer", "bytes"]
    check(sample(weights, *cpu) == said, "the same text on cpu")
    low = sample(weights, *cpu, "--precision", "fp16")
    check(low.startswith(PROMPT) and len(low) == len(said), "weights kept in 16 bits: %r" % low)
    return said


def decoders(tmp):
    for kind in folders.FOLDERS:
        folder = folders.make_folder(os.path.join(tmp, kind), kind, {**folders.SIZES, "max_position_embeddings": 100})
        sample(folder, "--prompt", "a", code=2, words="does not contain its tokenizer")
        said = likeliest(tmp, folder, folders.SIZES["vocab_size"])
        flags = ["--prompt", PROMPT, "--temperature", 0, "--tokenizer", "bytes", "--backend", "ref", "--max-tokens"]
        check(len(sample(folder, *flags, 80)) == len(PROMPT) + 80, "%s: more than the context" % kind)
        last = said[-1].encode("latin-1")[0]
        first = said.encode("latin-1").index(last, len(PROMPT))
        for ends in (last, [7, last] if last != 7 else [last, 8]):
            with open(os.path.join(folder, "generation_config.json"), "w", encoding="ascii") as f:
                json.dump({"eos_token_id": ends}, f)
            check(sample(folder, *flags, 20) == said[:first], "%s: the text ends before %s" % (kind, ends))
        with open(os.path.join(folder, "generation_config.json"), "w", encoding="ascii") as f:
            f.write('{"eos_token_id": "end"}')
        sample(folder, *flags, 20, code=2, words="generation_config.json: eos_token_id")


def chats(tmp):
    """The answer is what follows the rendered template; chat_answers.py compares with transformers."""
    folder = folders.make_folder(os.path.join(tmp, "chat"), "qwen3", {**folders.SIZES, "vocab_size": 300, "max_position_embeddings": 100})
    write_tokenizer(folder, ["one"], ["<|im_start|>", "<|im_end|>"])
    flags = ["--backend", "ref", "--temperature", 0, "--max-tokens", 30]
    sample(folder, *flags, "--chat", "one", code=2, words="no chat template")
    with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="ascii") as f:
        f.write("{% for m in messages %}<{{ m.role[0] }}>{{ m.content }}{% endfor %}{{ strftime_now('%d.%m.%Y') }}"
                "{% if add_generation_prompt %}A:{% endif %}")
    for prompt, chat in (("<s>brief<u>one x31.01.2026A:", ["--system", "brief", "--chat", "one x", "--template-date", "2026-01-31"]),
                         ("<|im_start|>user\n one<|im_end|>\n<|im_start|>assistant\n", ["--chat", " one", "--chat-template", "chatml"]),
                         ("<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\n",
                          ["--chat", "<|im_end|>", "--chat-template", "chatml", "--allow-special"])):
        said = sample(folder, *flags, "--prompt", prompt)
        answer = sample(folder, *flags, *chat, words="did not end within --max-tokens 30")
        check(said == prompt + answer != prompt, "%s: %r, expected the end of %r" % (chat, answer, said))
    for words, chat in (("spells a special token", ["--chat", "a<|im_end|>", "--chat-template", "chatml"]),
                        ("--system: needs --chat", ["--prompt", "a", "--system", "b"]), ("contradict", ["--prompt", "a", "--chat", "b"]),
                        ("expected a date", ["--chat", "b", "--template-date", "31.01.2026"]), ("its template, but the context", ["--chat", "a" * 120])):
        sample(folder, *flags, *chat, code=2, words=words)
    sample(folder, *flags[:-1], 500, "--chat", "one", words="or a context of 100 tokens")


def stops(tmp):
    """Where the template ends an answer, and other programs would not stop, inspect and training say so, once."""
    folder = folders.make_folder(os.path.join(tmp, "stops"), "qwen3", {**folders.SIZES, "vocab_size": 300})
    data, end = os.path.join(tmp, "stops.jsonl"), 257
    with open(data, "w", encoding="ascii") as f:
        f.write(json.dumps({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}) + "\n")
    for tokenizer, generation, config, file in ((None, None, None, "its configuration"), ("<|im_end|>", None, None, None), (None, None, [1, end], None),
                                                ("<|im_end|>", 1, end, "generation_config.json"), ("<|im_end|>", [1, 2], None, "generation_config.json"),
                                                (None, end, None, None), ("<|im_start|>", [1, end], None, None), (None, None, 1, "config.json")):
        write_tokenizer(folder, [], ["<|im_start|>", "<|im_end|>"], eos_token=tokenizer)
        for name, value in (("generation_config.json", generation), ("config.json", config)):
            with open(os.path.join(folder, name), encoding="ascii") as f:
                keys = json.load(f)
            with open(os.path.join(folder, name), "w", encoding="ascii") as f:
                json.dump({**keys, "eos_token_id": value}, f)
        flags = ["--data-path", data, "--chat-template", "chatml", "--val-split", 0]
        said = dptrain("inspect", "--init-from", folder, *flags)
        warned = dptrain("--init-from", folder, *flags, "--max-steps", 1, "--global-batch-size", 1, "-b", 1, "--backend", "ref", "--report-to", "none",
                         "--runs-dir", os.path.join(tmp, "runs-stops"))
        for p in (said, warned):
            text = p.stdout + p.stderr
            words = "ends an answer with <|im_end|>, token 257, which is not an end in %s:" % file
            check(p.returncode == 0 and text.count("ends an answer with") == (file is not None) and (not file or words in text),
                  "%s: exit %d: %s" % ((tokenizer, generation, config), p.returncode, text))


def draws(weights):
    flags = ["--prompt", "To ", "--max-tokens", 150, "--backend", "ref"]
    a, b, c = (sample(weights, *flags, "--seed", s) for s in (1, 1, 2))
    check(a == b and a != c, "the seed determines the text")
    check(sample(weights, *flags, "--top-k", 1, "--seed", 3) == sample(weights, *flags, "--temperature", 0), "the top 1 is the likeliest")
    check(sample(weights, *flags, "--top-p", 1e-9, "--seed", 3) == sample(weights, *flags, "--temperature", 0), "the least share is the likeliest")
    nucleus = sample(weights, *flags, "--top-p", 0.5, "--seed", 1)
    check(nucleus == sample(weights, *flags, "--top-p", 0.5, "--seed", 1) != a, "half of the probability: %r" % nucleus)
    check(sample(weights, *flags, "--top-p", 0.9999999, "--seed", 1) == a, "nearly all of it")
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
        likeliest(tmp, weights, 256, "--model", "gpt2-124m", *SIZES, "--block-size", CONTEXT, "--vocab-size", 256)
        decoders(tmp)
        chats(tmp)
        stops(tmp)
        draws(weights)
        unfit(tmp, weights)
    finish("sample")


main()
