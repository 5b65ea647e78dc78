# SPDX-License-Identifier: Apache-2.0
"""dptrain bench --profile: by op, node and block, the same operations and nearly the times of bench's own sums;
operations compared with PyTorch's counter (reference/make_flops.py), operand bytes with the shapes; a rank of two;
existing roofs."""
import sys
sys.dont_write_bytecode = True
import json
import os
import subprocess
sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", f) for f in ("api", "train")]
import helper
import lib

GPT = ["--model", "gpt2-124m", "--n-layer", "2", "--n-head", "2", "--n-embd", "32", "--block-size", "16", "--vocab-size", "64", "-b", "2",
       "--backend", "ref", "--precision", "fp64", "--threads", "1", "--steps", "3"]


def bench(by, *flags):
    r = subprocess.run([helper.DPTRAIN, "bench", *GPT, "--profile", by, "--json", *flags], capture_output=True, text=True, timeout=120)
    lib.equal(r.returncode, 0, r.stderr)
    return json.loads(r.stdout)


def total(b, key):
    return sum(row[key] for row in b["profile"])


def as_pytorch_counts():
    """All products within 1 %, including attention's: of every position with every other, as the counter counts
    them."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reference", "flops.json"), encoding="ascii") as f:
        want = json.load(f)
    for net in ("resnet18", "resnet50"):
        line = [helper.DPTRAIN, "bench", "--model", net, "--image-size", str(want["image"]), "-b", str(want["batch"]), "--steps", "1", "--json"]
        r = subprocess.run([*line, *map(str, helper.fast())], capture_output=True, text=True, timeout=120)
        lib.equal(r.returncode, 0, r.stderr)
        got, counted = json.loads(r.stdout)["step_flops"], want["nets"][net]["total"]
        lib.check(abs(got - counted) <= 0.01 * counted, f"{net}: {got} operations, PyTorch counts {counted}")
    gpt, tokens = want["nets"]["gpt2-124m"], want["gpt"]["n_positions"]
    flops, work = ({r["name"]: r[key] for r in bench("op")["profile"]} for key in ("flops", "work_flops"))
    lib.check(abs(sum(flops.values()) - gpt["total"]) <= 0.01 * gpt["total"], f"GPT: {sum(flops.values())} operations, PyTorch {gpt['total']}")
    attention, counted = flops["attention"] + flops["attention_grad"], gpt["ops"]["bmm"]
    lib.check(abs(attention - counted) <= 0.01 * counted, f"attention: {attention} operations, PyTorch counts {counted}")
    made = counted * (7 / 6) * (tokens + 1) / (2 * tokens)  # the masked half is skipped, scores are computed twice
    lib.check(abs(work["attention"] + work["attention_grad"] - made) <= 0.01 * made, f"attention: {work} made, {made} expected")


def main():
    as_pytorch_counts()
    by = {what: bench(what) for what in ("op", "node", "block")}
    for what, b in by.items():
        lib.check(abs(total(b, "work_flops") - b["step_flops"]) <= 1e-9 * b["step_flops"], f"{what}: operations of a step")
        lib.equal(total(b, "bytes"), total(by["node"], "bytes"), f"{what}: bytes")
        lib.equal(total(b, "calls"), len(by["node"]["profile"]), f"{what}: calls")
        lib.check(0 < total(b, "seconds") <= max(b["all_step_seconds"]), f"{what}: seconds")
        rows = b["profile"]
        lib.equal([r["seconds"] for r in rows], sorted((r["seconds"] for r in rows), reverse=True), f"{what}: the slowest first")
        lib.check(all(r["bound"] in ("compute", "memory") for r in rows), f"{what}: bounds")
    ops = {r["name"]: r for r in by["op"]["profile"]}
    own = {o["op"]: o for o in by["op"]["ops"]}
    lib.equal(set(ops), set(own), "ops")
    lib.check(all(abs(ops[o]["seconds"] - own[o]["seconds"]) < 1e-9 for o in ops), "seconds of ops")
    nodes = {r["name"]: r for r in by["node"]["profile"]}
    # 32 tokens of 32 numbers times a 128 x 32 matrix and a bias, in f64
    product = nodes["transformer.h.0.mlp.c_fc"]
    lib.equal((product["flops"], product["bytes"]), (2 * 32 * 32 * 128, 8 * (32 * 32 + 128 * 32 + 128 + 32 * 128)), "a product")
    blocks = {r["name"] for r in by["block"]["profile"]}
    lib.check({"block 1 forward", "block 2 backward", "no block, optimizer"} <= blocks, blocks)
    roof = by["op"]["roof"]
    rates = [b["gbs"] for b in roof["bandwidth"]]
    lib.check(roof["gflops"] > 0 and rates[-1] > 0 and rates == sorted(rates, reverse=True), roof)
    two = bench("op", "--nproc-per-node", "2")
    lib.check("allreduce" in {r["name"] for r in two["profile"]}, "the collectives of two ranks")
    said = subprocess.run([helper.DPTRAIN, "bench", *GPT, "--profile", "op"], capture_output=True, text=True, timeout=120).stdout
    lib.check("bound by" in said and "GB/s at 64 MiB" in said, said)
    lib.finish("profile")


main()
