# SPDX-License-Identifier: Apache-2.0
"""GPT from 125 M to 1 T parameters (article 4): measured while it fits into this machine, planned beyond on the article's
cluster (four machines of 8 A100 40 GB, 100 Gbit/s, batch 16 a GPU, 256 tokens). Sizes are those of `dptrain`. The plans are
of our bf16 with fp32 weights, which needs more bytes a parameter than the article's fp16 with SGD; limits are the largest
size that fits. Two cores measure only the smallest sizes; ranks here share the memory that GPUs have each."""
import json

from record import last_of, median_of

SIZES = [("gpt2-124m", 0.125), ("gpt2-350m", 0.35), ("gpt2-774m", 0.77), ("gpt2-1558m", 1.6), ("gpt-2.7b", 2.7), ("gpt-6.7b", 6.7), ("gpt-13b", 13), ("gpt-34b", 34),
         ("gpt-81b", 81), ("gpt-175b", 175), ("gpt-1t", 1008)]
CLUSTER = ["--auto", "--hardware", "a100-40gb-x8", "--nnodes", 4, "--synthetic", "--seq-len", 256, "-b", 16, "--precision", "bf16", "--opt", "sgd"]
WAYS = {"DDP": lambda p: p["strategy"] == "ddp", "PDP, 2 stages": lambda p: p["strategy"] == "pdp" and p["pp_stages"] == 2,
        "PDP, 4 stages": lambda p: p["strategy"] == "pdp" and p["pp_stages"] == 4, "FSDP": lambda p: p["strategy"] == "fsdp" and p["zero_stage"] == 3}
MEMORY = {"as it is": (("none",), ("none",)), "checkpointing": (("none", "selective", "full"), ("none",)),
          "and offload": (("none", "selective", "full"), ("none", "optimizer", "optimizer,params"))}
ARTICLE = {("DDP", "checkpointing"): 2.8, ("FSDP", "checkpointing"): 175}
LOCAL = {"single": ["--threads", 2], "DDP": ["--strategy", "ddp", "--nproc-per-node", 2, "--threads", 1],
         "FSDP": ["--strategy", "fsdp", "--nproc-per-node", 2, "--threads", 1],
         "PDP": ["--strategy", "pdp", "--pp-stages", 2, "--nproc-per-node", 2, "--threads", 1]}


def planned(s, rate, peak, limits):
    largest = {}
    for model, billions in SIZES:
        if s.over():
            s.problems.append("plans of %s and larger: no time" % model)
            break
        command = ["plan", *CLUSTER, "--model", model]
        out = s.tool(*command, "--json")
        plans = json.loads(out)["plans"] if out else []
        for way, is_way in WAYS.items():
            fit = [p for p in plans if is_way(p) and p["ranks"] == 32 and p["fits"]]
            for kind, (again, moved) in MEMORY.items():
                some = [p for p in fit if p["activation_checkpointing"] in again and p["offload"] in moved]
                if some:
                    largest[way, kind] = billions
            best = min(fit, key=lambda p: p["step_seconds"], default=None)
            words = "dptrain " + " ".join(map(str, ["plan", *CLUSTER, "--model MODEL"]))
            rate.plan(model, way, best["samples_per_s"] / 1000 if best else "does not fit", words)
            peak.plan(model, way, best["peak_bytes"] / 2**30 if best else "does not fit", words)
    for (way, kind), billions in largest.items():
        limits.plan(way, kind, billions, "dptrain " + " ".join(map(str, ["plan", *CLUSTER, "--model MODEL"])))
    for way in WAYS:
        for kind in MEMORY:
            if (way, kind) not in largest:
                limits.plan(way, kind, "none fits", "dptrain " + " ".join(map(str, ["plan", *CLUSTER, "--model MODEL"])))
    return largest


def offloaded(s):
    """What limits the fastest plan of FSDP with offloaded parameters, on the cluster and on one of its machines."""
    found = {}
    for nodes in (4, 1):
        out = s.tool("plan", *(nodes if w == 4 else w for w in CLUSTER), "--model", "gpt-13b", "--strategy", "fsdp", "--json")
        plans = [p for p in (json.loads(out)["plans"] if out else []) if p["fits"] and p["offload"] == "optimizer,params" and p["ranks"] == 8 * nodes]
        best = min(plans, key=lambda p: p["step_seconds"], default=None)
        found[nodes] = best["limit"] if best else "does not fit"
    s.fact("offload dominates before the network does", "confirmed" if found[4] == "copies" else "not confirmed",
           "FSDP of 13 B with offloaded parameters is limited by %s over 100 Gbit/s and by %s on NVLink (plan)" % (found[4], found[1]))


def measure(s):
    local = s.table("measured here, GPT at batch 2 a rank of 64 tokens", "tokens/s", list(LOCAL), base=("gpt2-124m", "single"))
    memory = s.table("peak memory of a rank, measured here", "MiB", list(LOCAL), form="%.0f")
    rate = s.table("the article's cluster, 32 A100", "thousand tokens/s", list(WAYS))
    peak = s.table("memory of a rank on that cluster", "GiB", list(WAYS))
    limits = s.table("largest size that fits on that cluster", "billion parameters", list(MEMORY), base=("DDP", "checkpointing"), article=ARTICLE)
    s.metrics = ["phase/step", "memory/peak_bytes"]
    sizes, steps, repeats = (["small GPT of 4 x 256"], 3, 1) if s.quick else (["gpt2-124m", "gpt2-350m"], 6, 3)
    flags = {"small GPT of 4 x 256": ["--model", "gpt2-124m", "--n-layer", 4, "--n-embd", 256, "--n-head", 4, "--vocab-size", 2048]}
    largest = planned(s, rate, peak, limits)

    def one(cell, turn):
        size, way = cell
        more = LOCAL[way]
        run = s.train("%s, %s, %d" % (size, way, turn + 1), *flags.get(size, ["--model", size]), "--synthetic", "--seq-len", 64, "-b", 2, "--opt", "sgd",
                      "--precision", "bf16", "--max-steps", steps, *more)
        if run:
            step_s, used = median_of(run, "phase/step"), last_of(run, "memory/used_bytes")
            local.add(size, way, step_s and 64 * 2 * (1 if way == "single" else 2) / step_s, run["id"])
            memory.add(size, way, used and used / 2**20, run["id"])
    s.turns([(size, way) for size in sizes for way in LOCAL], repeats, one)
    local.base = (sizes[0], "single")
    fsdp, others = largest.get(("FSDP", "checkpointing"), 0), max([v for (w, k), v in largest.items() if w != "FSDP" and k == "checkpointing"], default=0)
    s.fact("FSDP alone fits the largest", "confirmed" if fsdp > others else "not confirmed", "%g B against %g B with checkpointing (plan)" % (fsdp, others))
    s.fact("DDP runs out of memory first, then PDP by its stages", "confirmed" if largest.get(("DDP", "checkpointing"), 0) <= largest.get(
        ("PDP, 2 stages", "checkpointing"), 0) <= largest.get(("PDP, 4 stages", "checkpointing"), 0) else "not confirmed", "%s B (plan)" % ", ".join(
            "%g" % largest.get((w, "checkpointing"), 0) for w in WAYS))
    offloaded(s)
    s.notes.append("The article's last size before running out of memory: DDP 2.8 B, PDP of 2 stages below 16 B, of 4 below 34 B, FSDP 175 B; 1 T took 4,085 s an "
                   "iteration at batch 1 with offload.")
