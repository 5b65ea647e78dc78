# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of tests/bench/strategies/compare: a rank that trains GPT-2 on its part of a batch, over gloo. Runs
in a Python with torch 2.13.0, with torchrun's variables.

    pytorch_ranks.py --dir D --way none|ddp|zero1|fsdp --steps N --mode eager|compile
                                                rank 0 prints {"loss": [...], "step_seconds": [...]}

D contains gpt2-124m.weights.safetensors and gpt2-124m.batch.safetensors (the ranks' parts in order), made by
pytorch_step.py. Types depend on the strategy: autocast to bf16, or FSDP2's policy of bf16 parameters and f32 sums.
none: ranks that synchronise only their start."""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "parts"))

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from pytorch_step import LR, model_new, read_tensors, stored

NAME = "gpt2-124m"
ADAM = {"lr": LR[NAME], "betas": (0.9, 0.999), "eps": 1e-8}


def groups(net, decay):
    return [{"params": [p for p in net.parameters() if p.ndim > 1], "weight_decay": decay},
            {"params": [p for p in net.parameters() if p.ndim <= 1], "weight_decay": 0.0}]


def wrapped(net, o):
    """Returns the network wrapped by the strategy, and its optimiser."""
    if o.way == "fsdp":
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in net.h:
            if o.mode == "compile":
                layer.compile()
            fully_shard(layer, mesh=mesh, mp_policy=policy)
        fully_shard(net, mesh=mesh, mp_policy=policy)
        return net, torch.optim.AdamW(groups(net, 0.01), **ADAM, fused=True)
    inner = net
    if o.way != "none":
        net = DistributedDataParallel(net, gradient_as_bucket_view=True)
    if o.way == "zero1":
        return net, ZeroRedundancyOptimizer(groups(inner, 0.01), optimizer_class=torch.optim.AdamW, **ADAM, fused=True)
    return net, torch.optim.AdamW(groups(inner, 0.01), **ADAM, fused=True)


def own_part(o):
    tokens = read_tensors(os.path.join(o.dir, NAME + ".batch.safetensors"))["tokens"].chunk(dist.get_world_size())[dist.get_rank()]
    return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous().view(-1)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--dir", required=True)
    p.add_argument("--way", required=True, choices=["none", "ddp", "zero1", "fsdp"])
    p.add_argument("--steps", type=int, default=6)
    p.add_argument("--mode", default="eager", choices=["eager", "compile"])
    o = p.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    net = model_new(NAME)
    net.load_state_dict(stored(read_tensors(os.path.join(o.dir, NAME + ".weights.safetensors"))), strict=False)
    net, optimizer = wrapped(net.train(), o)
    x, y = own_part(o)

    def loss_of(x, y):
        with torch.autocast("cpu", torch.bfloat16):
            logits = net(x)
            return F.cross_entropy(logits.view(-1, logits.shape[-1]), y)

    if o.mode == "compile" and o.way != "fsdp":
        loss_of = torch.compile(loss_of)
    losses, seconds = [], []
    dist.barrier()
    for _ in range(o.steps):
        start = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.monotonic() - start)
    mean = torch.tensor(losses, dtype=torch.float64)
    dist.all_reduce(mean)
    if dist.get_rank() == 0:
        print(json.dumps({"loss": (mean / dist.get_world_size()).tolist(), "step_seconds": seconds}))
    dist.destroy_process_group()
    sys.stdout.flush()
    os._exit(0)  # otherwise ZeRO-1's second rank waits for ever for gloo's threads at the end


if __name__ == "__main__":
    main()
