# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning on conversations: loss and all gradients of a batch equal transformers' (labels -100) to 1e-9 in f64; a
batch of 8, 8 batches of 1 and 2 ranks of 4 give the same to 1e-12; padding changes nothing; long samples, --val-split,
--val-path, --strict and a second run; the template of --chat-template stays with what was trained. Skipped where transformers cannot be installed."""
import gzip
import json
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, ".."), os.path.join(HERE, "..", "..", "data", "texts")]
from folders import SIZES, make_folder  # noqa: E402
from helper import DPTRAIN, Folder, check, distance, dptrain, environment, fast, finish, norm, read_run, safetensors  # noqa: E402
from small_tokenizer import write_tokenizer  # noqa: E402
from transformers_venv import install, python  # noqa: E402

CHATML = ("{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
          "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}")
RECORDS = [{"messages": [{"role": r, "content": c} for r, c in turns]} for turns in (
    [("user", "one"), ("assistant", "two")], [("system", "be one"), ("user", "x"), ("assistant", "y"), ("user", "one two"), ("assistant", "")],
    [("user", ""), ("assistant", "a longer answer of many words")], [("user", "one"), ("assistant", "é日本")],
    [("assistant", "first")], [("user", "q"), ("assistant", "a"), ("assistant", "b")], [("user", "12345"), ("assistant", "\n\n x ")],
    [("user", "one two"), ("assistant", "two two")])]

WANT = '''
import json, sys, torch, transformers
from safetensors.torch import load_file, save_file
from torch.nn.functional import cross_entropy
folder, out, records = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_file=folder + "/tokenizer.json")
tokenizer.chat_template = open(folder + "/chat_template.jinja").read()
config = transformers.Qwen3Config.from_json_file(folder + "/config.json")
config._attn_implementation = "eager"
weights = load_file(folder + "/model.safetensors")
torch.float32 = torch.float = torch.float64
torch.Tensor.float = lambda t: t.double()
model = transformers.Qwen3ForCausalLM(config).double()
model.load_state_dict(weights)
total, count = 0, 0
for r in records:
    messages = r["messages"]
    text = tokenizer.apply_chat_template(messages, tokenize=False)
    made = tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)
    spans = []
    for i, m in enumerate(messages):
        if m["role"] == "assistant":
            begin = tokenizer.apply_chat_template(messages[:i], tokenize=False, add_generation_prompt=True) if i else "<|im_start|>assistant\\n"
            end = tokenizer.apply_chat_template(messages[:i + 1], tokenize=False)
            assert text.startswith(begin) and text.startswith(end) and end.endswith("<|im_end|>\\n")
            spans.append((len(begin), len(end) - 1))
    labels = [t if any(b < y and e > x for x, y in spans) else -100 for t, (b, e) in zip(made["input_ids"], made["offset_mapping"])]
    logits = model(torch.tensor([made["input_ids"]])).logits[0, :-1]
    total = total + cross_entropy(logits, torch.tensor(labels[1:]), ignore_index=-100, reduction="sum")
    count += sum(l != -100 for l in labels[1:])
loss = total / count
loss.backward()
save_file({**{n: p.grad.contiguous() for n, p in model.named_parameters()}, "loss": loss.detach().reshape(1)}, out)
'''


def step(folder, data, out, *flags):
    """Loss and gradients of one step in f64."""
    p = dptrain("--init-from", folder, "--data-path", data, "--pack", "none", "--val-split", 0, "--shuffle", "none", "--backend", "ref", "--max-steps", 1, "--opt", "sgd",
                "--dump-grads", out, "--runs-dir", out + ".runs", *flags)
    if not check(p.returncode == 0, "%s: exit %d: %s" % (flags, p.returncode, p.stderr)):
        finish("chat_loss")
    return read_run(out + ".runs")["series"][("train/loss", -1)][1], safetensors(out), p.stdout


def same(title, got, want, limit):
    names = set(got[1])
    total = norm([norm(want[1][n][1]) for n in names])
    worst = max(distance(got[1][n][1], want[1][n][1], total) for n in names)
    check(abs(got[0] - want[0]) <= limit * abs(want[0]), "%s: loss %.17g, expected %.17g" % (title, got[0], want[0]))
    check(worst <= limit, "%s: gradients differ by %.2e" % (title, worst))


def packed(folder, data, tmp, whole):
    """Samples of several conversations: attention and loss of each are as if it were alone, whatever shares its sample."""
    for title, flags in (("packed", ["--global-batch-size", 5, "-b", 5]), ("packed 5 x 1", ["--global-batch-size", 5, "-b", 1, "--grad-accum-steps", 5]),
                         ("in one sample", ["--global-batch-size", 1, "-b", 1, "--seq-len", 320]),
                         *(("packed, %s of 2" % s, ["--global-batch-size", 2, "-b", 1, "--seq-len", 192, "--nproc-per-node", 2, "--strategy", s])
                           for s in ("ddp", "fsdp")),
                         ("packed, pdp", ["--global-batch-size", 2, "-b", 2, "--seq-len", 192, "--nproc-per-node", 2, "--strategy", "pdp"]),
                         ("packed, selective", ["--global-batch-size", 2, "-b", 2, "--seq-len", 192, "--activation-checkpointing", "selective"])):
        got = step(folder, data, os.path.join(tmp, title.replace(" ", "-")), "--pack", "documents", *flags)
        check("packed into " in got[2], "%s: %s" % (title, got[2]))
        same(title, got, whole, 1e-12)


def write_records(path, records):
    with open(path, "w", encoding="utf-8") as f:
        f.write("".join(json.dumps(r) + "\n" for r in records))
    return path


def refused(title, words, *flags):
    p = dptrain(*flags, "--report-to", "none", "--max-steps", 1, *fast())
    lines = p.stderr.strip().split("\n")
    check(p.returncode == 2 and all(w in lines[-1] for w in words), "%s: expected %s: exit %d: %s" % (title, words, p.returncode, p.stderr))


def sets(folder, data, tmp):
    """What is drawn, left out and refused."""
    base = ["--init-from", folder, "--data-path", data]
    refused("long samples", ["longer than 24 tokens", "--long-samples"], *base, "--seq-len", 24)
    refused("strict", ["--strict", "wizard"], "--init-from", folder, "--strict", "--data-path",
            write_records(os.path.join(tmp, "bad.jsonl"), RECORDS + [{"messages": [{"role": "wizard", "content": ""}]}]))
    refused("no form", ["conversations: messages"], "--init-from", folder, "--data-path", write_records(os.path.join(tmp, "other.jsonl"), [{"a": 1}]))
    array = os.path.join(tmp, "array.json")
    with open(array, "w", encoding="ascii") as f:
        f.write('[{"a": 1, "b": 2}]')
    refused("no form", ["first record has a, b"], "--init-from", folder, "--data-path", array)
    with open(array, "w", encoding="utf-8") as f:
        json.dump(RECORDS, f, indent=1)
    with open(array, "rb") as f, gzip.open(array + ".gz", "wb") as to:
        to.write(f.read())
    for path in (array, array + ".gz"):
        p = dptrain("inspect", "--tokenizer", folder, "--data-path", path, "--val-split", 0)
        check("8 training" in p.stdout and "8 conversations" in p.stdout, "%s: %s%s" % (path, p.stdout, p.stderr))
    with open(array, "a", encoding="ascii") as f:
        f.write("x")
    refused("after the array", ["expected a JSON array"], "--init-from", folder, "--data-path", array)
    refused("nothing trained", ["no token is trained"], "--init-from", folder, "--data-path",
            write_records(os.path.join(tmp, "ask.jsonl"), [{"messages": [{"role": "user", "content": "a"}]}]))
    refused("no JSON", ["record 2 is not a JSON object"], "--init-from", folder, "--data-path", write_records(os.path.join(tmp, "no.jsonl"), [RECORDS[0], 3]))
    many = write_records(os.path.join(tmp, "many.jsonl"), RECORDS * 20)
    for seed, flags in ((0, []), (0, []), (1, []), (0, ["--val-path", data]), (0, ["--long-samples", "drop", "--seq-len", 24]),
                        (0, ["--long-samples", "split", "--seq-len", 24])):
        p = dptrain("inspect", "--tokenizer", folder, "--data-path", many, "--seed", seed, *flags)
        check(p.returncode == 0, "inspect %s: %s" % (flags, p.stderr))
        yield p.stdout


def template_stays(folder, data, tmp):
    """The template of --chat-template is in the run's folder, in the adapter and in what is merged from it: later commands need no flag."""
    own, text = os.path.join(tmp, "own.jinja"), CHATML.replace("assistant", "helper")
    with open(own, "w", encoding="utf-8") as f:
        f.write(text)
    for title, flags in (("full", []), ("LoRA", ["--lora", 2])):
        runs = os.path.join(tmp, "stays" + title)
        p = dptrain("--init-from", folder, "--data-path", data, "--chat-template", own, "--train-on", "all", *fast(), "--max-steps", 1, "--runs-dir", runs, *flags)
        check(p.returncode == 0, "%s with a template: exit %d: %s" % (title, p.returncode, p.stderr))
        made = [read_run(runs)["folder"]]
        if flags:
            merged = os.path.join(tmp, "with_template")
            dptrain("merge", "--init-from", folder, "--adapter", os.path.join(made[0], "adapter"), "--out", merged)
            made += [os.path.join(made[0], "adapter"), merged]
        for at in made if not flags else made[1:]:
            with open(os.path.join(at, "chat_template.jinja"), encoding="utf-8") as f:
                check(f.read() == text, "%s: the template in %s" % (title, at))
        said = [subprocess.run([DPTRAIN, "sample", "--init-from", made[0], "--chat", "one", "--max-tokens", "8", "--temperature", "0", *more],
                               env=environment(), capture_output=True, timeout=100, check=False).stdout
                for more in ([], ["--chat-template", own], ["--chat-template", os.path.join(folder, "chat_template.jinja")])]
        check(said[0] and said[0] == said[1] != said[2], "%s: answers without the flag: %r" % (title, said))


def main():
    install()
    with Folder() as tmp:
        folder = make_folder(os.path.join(tmp, "model"), "qwen3", {**SIZES, "vocab_size": 300, "max_position_embeddings": 512})
        write_tokenizer(folder, ["one", "\u0120two"], ["<|im_start|>", "<|im_end|>"])
        with open(os.path.join(folder, "chat_template.jinja"), "w", encoding="utf-8") as f:
            f.write(CHATML)
        data, want_path = write_records(os.path.join(tmp, "messages.jsonl"), RECORDS), os.path.join(tmp, "want")
        if not python(WANT, folder, want_path, json.dumps(RECORDS)):
            finish("chat_loss")
        want = safetensors(want_path)
        whole = step(folder, data, os.path.join(tmp, "whole"), "--global-batch-size", 8, "-b", 8)
        check("8 conversations" in whole[2] and "are trained" in whole[2], "trained tokens are printed: %s" % whole[2])
        same("transformers", whole, (want.pop("loss")[1][0], want), 1e-9)
        for title, flags in (("8 x 1", ["-b", 1, "--grad-accum-steps", 8]), ("2 ranks x 4", ["-b", 4, "--nproc-per-node", 2]),
                             ("padding", ["-b", 8, "--seq-len", 64]), ("a second run", ["-b", 8])):
            same(title, step(folder, data, os.path.join(tmp, title), "--global-batch-size", 8, *flags), whole, 1e-12)
        packed(folder, data, tmp, whole)
        template_stays(folder, data, tmp)
        first, again, other, path, drop, split = sets(folder, data, tmp)
        check(first == again and first != other, "the seed draws the conversations: %s" % first)
        check("160 training and 8 evaluation" in path, "--val-path: %s" % path)
        check("longer than --seq-len 24" in drop and "left out" not in split, "long samples: %s %s" % (drop, split))
    finish("chat_loss")


main()
