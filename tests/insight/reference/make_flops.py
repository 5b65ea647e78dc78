#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes flops.json: floating-point operations of the products in one training step (forward and backward), by kind, as
counted by PyTorch (torch.utils.flop_counter). Needs torch and transformers:
`python3 make_flops.py` in this folder."""
import json
import os
import sys

import torch
from torch.utils.flop_counter import FlopCounterMode
from transformers import GPT2Config, GPT2LMHeadModel

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "train", "reference"))
import make_torchvision  # noqa: E402

BATCH, IMAGE = 2, 64
GPT = {"n_layer": 2, "n_head": 2, "n_embd": 32, "n_positions": 16, "vocab_size": 64}


def counted(step):
    counter = FlopCounterMode(display=False)
    with counter:
        step()
    ops = {}
    for op, n in counter.get_flop_counts()["Global"].items():
        ops[str(op).replace("aten.", "")] = ops.get(str(op), 0) + n
    return {"total": counter.get_total_flops(), "ops": ops}


def resnet(name):
    net, images = make_torchvision.module(name), torch.zeros(BATCH, 3, IMAGE, IMAGE)
    return counted(lambda: net(images).sum().backward())


def gpt():
    net = GPT2LMHeadModel(GPT2Config(**GPT, attn_implementation="eager"))
    tokens = torch.zeros(BATCH, GPT["n_positions"], dtype=torch.long)
    return counted(lambda: net(tokens, use_cache=False).logits.sum().backward())


def main():
    out = {"torch": torch.__version__, "batch": BATCH, "image": IMAGE, "gpt": GPT,
           "nets": {**{name: resnet(name) for name in make_torchvision.NETS}, "gpt2-124m": gpt()}}
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "flops.json"), "w", encoding="ascii") as f:
        json.dump(out, f, indent="\t")
        f.write("\n")


main()
