# SPDX-License-Identifier: Apache-2.0
"""PyTorch's part of tests/gpu/all: complete training steps on a GPU of the models of
tests/bench/parts/pytorch_step.py, from the same weights and batch, in the fastest of three modes: eager, compiled,
compiled with CUDA graphs; channels_last, fused optimiser, autocast in 16 bits (fp16 with a gradient scaler).

    peer.py make  --model M --batch N [--seq T] --dir D     writes weights and batch
    peer.py serve --model M --batch N [--seq T] --dir D --precision P [--device cuda]
        prints {"mode", "torch", "loss": [two steps of fresh weights]}; then, for each number of steps on stdin, {"step_seconds",
        "device_bytes"}: device memory in use beyond that of the context"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "bench", "parts"))
import torch
import torch.nn.functional as F
from pytorch_step import LR, SEED, batch_new, model_new, optimizer_new, read_tensors, state_new, stored, write_tensors

MODES = {"eager": None, "compiled": "default", "graphs": "reduce-overhead"}
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
TRIAL_STEPS = 8


def path(o, what):
    return os.path.join(o.dir, "%s.%s.safetensors" % (o.model, what))


def make(o):
    torch.manual_seed(SEED)
    write_tensors(path(o, "weights"), stored(state_new(o.model)))
    write_tensors(path(o, "batch"), batch_new(o.model, o.batch, o.seq))


class Side:
    """A model with its optimiser, run in one mode."""

    def __init__(self, o, mode):
        self.o, self.mode = o, mode
        self.net = model_new(o.model)
        self.net.load_state_dict(stored(read_tensors(path(o, "weights"))), strict=False)
        self.net = self.net.to(o.device, memory_format=torch.channels_last if o.model.startswith("resnet") else torch.preserve_format)
        self.net.train()
        self.optimizer = optimizer_new(o.model, self.net)
        self.scaler = torch.amp.GradScaler(o.device, enabled=o.precision == "fp16" and o.device == "cuda")
        batch = read_tensors(path(o, "batch"))
        if "tokens" in batch:
            self.x, self.y = batch["tokens"][:, :-1].contiguous().to(o.device), batch["tokens"][:, 1:].contiguous().view(-1).to(o.device)
        else:
            self.x = batch["images"].to(o.device, memory_format=torch.channels_last)
            self.y = batch["labels"].to(o.device)
        self.loss_of = torch.compile(self.loss, mode=MODES[mode]) if MODES[mode] else self.loss

    def loss(self, x, y):
        with torch.autocast(self.o.device, TYPES[self.o.precision], enabled=self.o.precision != "fp32"):
            logits = self.net(x)
            return F.cross_entropy(logits.view(-1, logits.shape[-1]), y)

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        if MODES[self.mode]:
            torch.compiler.cudagraph_mark_step_begin()
        loss = self.loss_of(self.x, self.y)
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss

    def seconds(self, steps):
        """Mean seconds per step, without waiting for the device in between."""
        sync(self.o)
        start = time.monotonic()
        for _ in range(steps):
            self.step()
        sync(self.o)
        return (time.monotonic() - start) / steps


def sync(o):
    if o.device == "cuda":
        torch.cuda.synchronize()


def used(o):
    if o.device != "cuda":
        return 0
    room, everything = torch.cuda.mem_get_info()
    return everything - room


def choose(o):
    """The fastest mode with its model; unsupported modes are skipped."""
    best, tried = None, {}
    for mode in MODES:
        try:
            side = Side(o, mode)
            losses = [side.step().item() for _ in range(2)]
            for _ in range(TRIAL_STEPS):  # compiling, graphs, cuDNN's choices
                side.step()
            tried[mode] = side.seconds(TRIAL_STEPS)
        except Exception as e:  # pylint: disable=broad-except
            print("%s: %s" % (mode, e), file=sys.stderr)
            continue
        if best is None or tried[mode] < tried[best[0].mode]:
            best = (side, losses)
        del side
        torch.compiler.reset()
        if o.device == "cuda":
            torch.cuda.empty_cache()
    if best is None:
        sys.exit("PyTorch runs in none of its modes")
    return (*best, tried)


def serve(o):
    torch.backends.cudnn.benchmark = True
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    if o.device == "cuda":
        torch.zeros(1, device="cuda").add_(1)  # the context
    before = used(o)
    _, losses, tried = choose(o)
    mode = min(tried, key=tried.get)
    del _
    if o.device == "cuda":
        torch.cuda.empty_cache()
    side = Side(o, mode)  # created again, without memory of other modes
    for _ in range(TRIAL_STEPS):
        side.step()
    say({"mode": mode, "torch": torch.__version__, "loss": losses, "tried": tried})
    for line in sys.stdin:
        say({"step_seconds": side.seconds(int(line)), "device_bytes": used(o) - before})


def say(answer):
    print(json.dumps(answer), flush=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("what", choices=["make", "serve"])
    p.add_argument("--model", required=True, choices=sorted(LR))
    p.add_argument("--dir", required=True)
    p.add_argument("--batch", type=int, required=True)
    p.add_argument("--seq", type=int, default=256)
    p.add_argument("--precision", default="fp32", choices=sorted(TYPES))
    p.add_argument("--device", default="cuda")
    o = p.parse_args()
    make(o) if o.what == "make" else serve(o)


main()
