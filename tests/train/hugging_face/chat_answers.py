# SPDX-License-Identifier: Apache-2.0
"""`dptrain sample --chat` gives the tokens of transformers' apply_chat_template() and generate(), and PEFT's with an adapter,
on folders with random weights: with a system message, a tokenizer that adds a token in front, and an answer that ends at
a token of generation_config.json, of the tokenizer, or of the template. Skipped where transformers cannot be installed."""
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "data", "texts")]
from helper import DPTRAIN, Folder, check, dptrain, environment, finish, read_run  # noqa: E402
from small_tokenizer import write_tokenizer  # noqa: E402
from transformers_venv import install, python  # noqa: E402

LENGTH = 40
SPECIAL = ["<|%d|>" % i for i in range(300)]
TEMPLATE = ("{{ bos_token }}{% for m in messages %}{{ '<|1|>' + m.role + '\n' + m.content | trim }}{% if m.role == 'assistant' %}"
            "{{ 'END\n' }}{% else %}{{ '<|2|>\n' }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|1|>assistant\n' }}{% endif %}")
SIZES = {"vocab_size": 559, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 200, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
CASES = {"llama": ("Llama", {}), "qwen3": ("Qwen3", {"head_dim": 16}), "gemma3": ("Gemma3Text", {"head_dim": 8, "sliding_window": 16})}
MESSAGES = [("How do I reset it?", None), (" one two\n", "Be brief: é 日本")]

MAKE = '''
import json, sys, torch, transformers
cases, sizes, folder = json.loads(sys.argv[1]), json.loads(sys.argv[2]), sys.argv[3]
for title, (name, kwargs) in cases.items():
    torch.manual_seed(7)
    config = getattr(transformers, name + "Config")(**{**sizes, **kwargs, "initializer_range": 0.4})
    getattr(transformers, name.replace("Text", "") + "ForCausalLM")(config).save_pretrained(folder + "/" + title)
'''
ANSWER = '''
import json, sys, torch, transformers
from peft import PeftModel
folder, adapter, out, chats, length = sys.argv[1], sys.argv[2], sys.argv[3], json.loads(sys.argv[4]), int(sys.argv[5])
tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
if adapter:
    model = PeftModel.from_pretrained(model, adapter).eval()
said = []
for text, system in chats:
    messages = ([{"role": "system", "content": system}] if system else []) + [{"role": "user", "content": text}]
    ids = tokenizer.apply_chat_template(messages, tokenize=True, add_generation_prompt=True, return_tensors="pt", return_dict=True)["input_ids"]
    got = model.generate(input_ids=ids, max_new_tokens=length, do_sample=False)[0].tolist()
    said.append({"prompt": ids[0].tolist(), "answer": got[ids.shape[1]:]})
json.dump(said, open(out, "w"))
'''


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        f.write(value if isinstance(value, str) else json.dumps(value))


def make_tokenizer(folder, eos, template):
    """Text tokens, and many special ones; <|0|> is put in front of a plain text."""
    write_tokenizer(folder, ["\u0120two"], SPECIAL, bos_token="<|0|>", eos_token=eos, tokenizer_class="PreTrainedTokenizerFast")
    with open(os.path.join(folder, "tokenizer.json"), encoding="utf-8") as f:
        own = json.load(f)
    ids = {a["content"]: a["id"] for a in own["added_tokens"]}
    own["post_processor"] = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<|0|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
                             "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
                             "special_tokens": {"<|0|>": {"id": "<|0|>", "ids": [ids["<|0|>"]], "tokens": ["<|0|>"]}}}
    write(folder, "tokenizer.json", own)
    write(folder, "chat_template.jinja", template)
    write(folder, "generation_config.json", {})
    return own, {i: s for s, i in ids.items()}


def bytes_of(own, tokens):
    """What the tokens spell, from tokenizer.json."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    shown = {**{chr(b): b for b in plain}, **{chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in plain)}}
    added, pieces = {a["id"]: a["content"] for a in own["added_tokens"]}, {i: p for p, i in own["model"]["vocab"].items()}
    return b"".join(added[t].encode() if t in added else bytes(shown[c] for c in pieces.get(t, "")) for t in tokens)


def answers(title, want, own, *flags):
    for (text, system), w in zip(MESSAGES, want):
        p = subprocess.run([DPTRAIN, "sample", *flags, "--chat", text, *(["--system", system] if system else []), "--max-tokens", str(LENGTH),
                            "--temperature", "0"], env=environment(), timeout=100, capture_output=True)
        said = bytes_of(own, w)
        check(p.returncode == 0 and p.stdout == said + b"\n", "%s: exit %d: %r, expected %r: %s" % (title, p.returncode, p.stdout, said, p.stderr))
        check((b"did not end" in p.stderr) == (len(w) == LENGTH), "%s: %d tokens: %s" % (title, len(w), p.stderr))


def ends(title, folder, want, own, special):
    """The answer ends before a special token, wherever it is named."""
    at = next((i for i, t in enumerate(want[0]) if i and t in special), None)
    if not check(at is not None, "%s: a special token in %s" % (title, want[0])):
        return
    token, cut = want[0][at], [w[:w.index(want[0][at])] if want[0][at] in w else w for w in want]
    write(folder, "generation_config.json", {"eos_token_id": [3, token]})
    answers(title + ", generation_config.json", cut, own, "--init-from", folder)
    write(folder, "generation_config.json", {})
    write(folder, "chat_template.jinja", TEMPLATE.replace("END", special[token]))
    answers(title + ", template", cut, own, "--init-from", folder)
    make_tokenizer(folder, special[token], TEMPLATE)
    answers(title + ", tokenizer", cut, own, "--init-from", folder)


def theirs(tmp, folder, adapter=""):
    out = os.path.join(tmp, "said.json")
    if not python(ANSWER, folder, adapter, out, json.dumps(MESSAGES), str(LENGTH)):
        finish("chat_answers")
    with open(out, encoding="ascii") as f:
        return [s["answer"] for s in json.load(f)]


def adapted(tmp, folder, own):
    """A run with LoRA, after its base has moved, too."""
    data, runs = os.path.join(tmp, "m.jsonl"), os.path.join(tmp, "runs")
    write(tmp, "m.jsonl", "".join(json.dumps({"messages": [{"role": "user", "content": "q%d" % i}, {"role": "assistant", "content": "a"}]}) + "\n"
                                  for i in range(8)))
    p = dptrain("--init-from", folder, "--data-path", data, "--val-split", 0, "--lora", 4, "--lr", 0.1, "--max-steps", 3, "--global-batch-size", 4, "-b", 4,
                "--backend", "cpu", "--runs-dir", runs)
    if not check(p.returncode == 0, "LoRA: exit %d: %s" % (p.returncode, p.stderr)):
        return
    run = read_run(runs)["folder"]
    want = theirs(tmp, folder, os.path.join(run, "adapter"))
    check(want != theirs(tmp, folder), "the adapter changes the answers: %s" % want)
    answers("LoRA", want, own, "--init-from", run)
    moved = folder + "-moved"
    os.rename(folder, moved)
    p = dptrain("sample", "--init-from", run, "--chat", "x")
    check(p.returncode == 2 and "--adapter" in p.stderr and p.stderr.count("\n") == 1, "a base that moved: exit %d: %s" % (p.returncode, p.stderr))
    answers("moved", want, own, "--init-from", moved, "--adapter", os.path.join(run, "adapter"))


def drawing(folder):
    """generation_config.json says how tokens are drawn, unless a flag does."""
    def say(*flags):
        return subprocess.run([DPTRAIN, "sample", "--init-from", folder, "--chat", "x", "--max-tokens", str(LENGTH), "--seed", "3", *map(str, flags)],
                              env=environment(), timeout=100, capture_output=True)
    given = ("--temperature", 0.7, "--top-k", 5, "--top-p", 0.9)
    plain, want, greedy, hot = say().stdout, say(*given).stdout, say("--temperature", 0).stdout, say("--temperature", 3, *given[2:]).stdout
    check(len({plain, want, greedy, hot}) == 4, "four ways to draw: %r" % [plain, want, greedy, hot])
    for config, flags, expected in (({"do_sample": True, "temperature": 0.7, "top_k": 5, "top_p": 0.9}, (), want), ({"do_sample": False}, (), greedy),
                                    ({"temperature": 0.1, "top_k": 5, "top_p": 0.9}, ("--temperature", 3), hot), ({"top_k": None}, (), plain)):
        write(folder, "generation_config.json", config)
        p = say(*flags)
        check(p.returncode == 0 and p.stdout == expected, "%s %s: %r, expected %r: %s" % (config, flags, p.stdout, expected, p.stderr))
    write(folder, "generation_config.json", {"top_p": 2})
    p = say()
    check(p.returncode == 2 and b"generation_config.json: top_p: expected at most 1" in p.stderr, "top_p 2: exit %d: %s" % (p.returncode, p.stderr))
    write(folder, "generation_config.json", {})


def main():
    install()
    with Folder() as tmp:
        if not python(MAKE, json.dumps(CASES), json.dumps(SIZES), tmp):
            finish("chat_answers")
        for title in CASES:
            folder = os.path.join(tmp, title)
            own, special = make_tokenizer(folder, None, TEMPLATE)
            want = theirs(tmp, folder)
            answers(title, want, own, "--init-from", folder)
            if title == "llama":
                drawing(folder)
            ends(title, folder, want, own, special)
        make_tokenizer(folder, None, TEMPLATE)
        adapted(tmp, folder, own)
    finish("chat_answers")


main()
