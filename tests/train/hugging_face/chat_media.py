#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The answer that a run records at each evaluation: what it answers and the answer that is given; the model's, by every
strategy, is that of `dptrain sample` with the weights of that step. Training has the same bits without evaluations, and
texts have no answers."""
import array
import json
import os
import random
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "data", "texts")]
from folders import SIZES, make_folder  # noqa: E402
from helper import DPTRAIN, Folder, check, dptrain, environment, finish, read_run, safetensors, write_safetensors  # noqa: E402
from small_tokenizer import write_tokenizer  # noqa: E402

CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
ASKED, GIVEN = "one `two`\n\u00e9?", "a **long**\n\nanswer"
PROMPT = "<|im_start|>user\n" + ASKED + "<|im_end|>\n<|im_start|>assistant\n"


def talk(*turns):
    return {"messages": [{"role": r, "content": c} for r, c in zip(("user", "assistant") * 2, turns)]}


def draw_weights(folder):
    """Wide logits, so that rounding does not choose the words."""
    path, draw = os.path.join(folder, "model.safetensors"), random.Random(5)
    write_safetensors(path, [(n, "F32", shape, array.array("f", [draw.gauss(len(shape) == 1, 0.4) for _ in values]).tobytes())
                             for n, (shape, values) in safetensors(path).items()])


def block(title, text):
    return "**%s**\n\n    %s\n\n" % (title, text.replace("\n", "\n    "))


def train(folder, data, runs, *flags, val=("--val-path", "val.jsonl")):
    p = dptrain("--init-from", folder, "--data-path", data, "--max-steps", 6, "--global-batch-size", 4, "-b", 2, "--lr", 0.003, "--opt", "adamw", "--seq-len", 128,
                val[0], val[1] and os.path.join(os.path.dirname(data), val[1]), "--runs-dir", runs, *flags)
    check(p.returncode == 0, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))
    return read_run(runs)


def answer_of(run):
    p = subprocess.run([DPTRAIN, "sample", "--init-from", run, "--chat", ASKED, "--max-tokens", "48", "--temperature", "0", "--backend", "ref"],
                       env=environment(), timeout=100, capture_output=True, check=False)
    return p.stdout[:-1].decode(errors="replace")


def recorded(title, run, steps):
    """The answers by step; the last one is that of the weights in the run's folder."""
    texts = {step: text for (key, step), text in run["texts"].items() if key == "val/answer"}
    head = block("Conversation", PROMPT) + block("The answer that is given", GIVEN + "<|im_end|>") + "**The model's answer"
    if not check(set(steps) <= set(texts), "%s: answers at %s" % (title, sorted(texts))):
        return []
    check(all(t.startswith(head) for t in texts.values()), "%s: %r, expected %r" % (title, texts, head))
    cut, _, last = texts[steps[-1]][len(head):-2].partition("**\n\n    ")
    check(cut in ("", ", cut after 5 s"), "%s: %r" % (title, cut))
    own, last = answer_of(run["folder"]), last.replace("\n    ", "\n").replace("<|im_end|>", "")
    own, last = (re.sub("\ufffd+", "\ufffd", t) for t in (own, last))  # Python counts malformed bytes otherwise
    check(own.startswith(last) if cut else own == last, "%s: %r, dptrain sample %r" % (title, last, own))
    return [texts[s] for s in steps]


def main():
    with Folder() as tmp:
        with open(os.path.join(tmp, "messages.jsonl"), "w", encoding="utf-8") as f:
            f.write("".join(json.dumps(talk("ask %d" % i, "say %d" % (i * i))) + "\n" for i in range(12)))
        with open(os.path.join(tmp, "val.jsonl"), "w", encoding="utf-8") as f:
            f.write(json.dumps(talk(ASKED, GIVEN, "more", "b")) + "\n" + json.dumps(talk("c", "d")) + "\n")
        data, made = os.path.join(tmp, "messages.jsonl"), {}
        for name in ("qwen3", "gemma3"):
            folder = make_folder(os.path.join(tmp, name), name, {**SIZES, "vocab_size": 263, "max_position_embeddings": 512})
            draw_weights(folder)
            write_tokenizer(folder, ["one", "\u0120two"], ["<|im_start|>", "<|im_end|>"])
            with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as f:
                f.write(CHATML)
            for pack in ("none", "documents") if name == "qwen3" else ("documents",):
                title = name + " " + pack
                run = train(folder, data, os.path.join(tmp, title), "--pack", pack, "--eval-steps", 2, "--backend", "ref")
                made[title] = recorded(title, run, [2, 4, 6])
            alone = train(folder, data, os.path.join(tmp, name + "alone"), "--pack", pack, "--backend", "ref", val=("--val-split", 0))
            check(not any(key == "val/answer" for key, _ in alone["texts"]), "no evaluation, no answer")
            weights = [safetensors(os.path.join(r["folder"], "model.safetensors")) for r in (run, alone)]
            check(weights[0] == weights[1], "%s: other weights without answers" % name)
        check(any(len(set(m)) > 1 for m in made.values()), "the answers change: %s" % made)
        for strategy in ("ddp", "fsdp", "pdp"):
            run = train(os.path.join(tmp, "qwen3"), data, os.path.join(tmp, strategy), "--pack", "documents", "--eval-steps", 2, "--backend", "ref",
                        "--nproc-per-node", 2, "--strategy", strategy)
            check(recorded(strategy, run, [2, 4, 6]) == made["qwen3 documents"], "%s: other answers than of one rank" % strategy)
        run = train(os.path.join(tmp, "qwen3"), data, os.path.join(tmp, "lora"), "--lora", 2, "--eval-steps", 3, "--backend", "cpu", "--precision", "fp32")
        recorded("LoRA", run, [3, 6])
    finish("chat_media")


main()
