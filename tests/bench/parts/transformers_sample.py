"""transformers' side of tests/bench/sample.
make DIR: GPT-2 124M with drawn weights, as save_pretrained writes them.
run DIR fp32|bf16 PROMPT SHORT LONG: JSON with the seconds of a token and the bytes that were said, the likeliest each time."""
import json
import sys
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel
from transformers.cache_utils import DynamicCache

BYTES = 256


def make(folder):
    torch.manual_seed(7)
    GPT2LMHeadModel(GPT2Config(initializer_range=0.05)).save_pretrained(folder)


@torch.inference_mode()
def said(model, prompt, tokens):
    """The bytes that follow, and the seconds that they took."""
    begin, cache = time.perf_counter(), DynamicCache()
    text, ids = [], torch.tensor([list(prompt.encode())])
    for _ in range(tokens):
        logits = model(input_ids=ids, past_key_values=cache, use_cache=True, logits_to_keep=1).logits
        text.append(int(logits[0, -1, :BYTES].argmax()))
        ids = torch.tensor([[text[-1]]])
    return text, time.perf_counter() - begin


def run(folder, precision, prompt, short, long):
    torch.set_num_threads(1)
    model = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.bfloat16 if precision == "bf16" else torch.float32).eval()
    said(model, prompt, short)
    _, few = said(model, prompt, short)
    text, many = said(model, prompt, long)
    read = sum(p.numel() for p in model.parameters()) - model.transformer.wpe.weight.numel()
    json.dump({"token_s": (many - few) / (long - short), "said": list(prompt.encode()) + text, "parameters": read}, sys.stdout)


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    run(sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
