# SPDX-License-Identifier: Apache-2.0
"""Which of DDP, PDP and FSDP is fastest, by size of a GPT, batch and link (article 4, figures 20 and 21): planned for 8 A100
40 GB as one machine (NVLink) and as four machines of two (100 Gbit/s). The article's rules: below 10 B parameters PDP where
the amortised communication overhead (ACO) exceeds 20 ms a sample; below 3 B otherwise DDP; else FSDP. Two cores measure
nothing of this: all cells are plans. The cells of the figures are images, so only the rules are compared."""
import json

COMMAND = ["plan", "--map", "--hardware", "a100-40gb-x8"]


def rule(c):
    if c["parameters"] < 10e9 and c["aco"] > 0.020:
        return "pdp"
    return "ddp" if c["parameters"] < 3e9 and c["aco"] <= 0.020 else "fsdp"


def measure(s):
    out = s.tool(*COMMAND, "--json")
    if not out:
        return
    cells = json.loads(out)["cells"]
    batches = sorted({c["batch_size"] for c in cells})
    s.metrics = ["samples_per_s", "aco"]
    for link in ("slow", "fast"):
        t = s.table("winner on the %s link" % link, "strategy and samples/s", ["batch %d" % b for b in batches])
        for model in dict.fromkeys(c["model"] for c in cells):
            row = [c for c in cells if c["model"] == model and c["link"] == link]
            for c in row:
                t.plan(model, "batch %d" % c["batch_size"], "%s %.4g" % (c["strategy"], c["samples_per_s"]) if c["strategy"] else "nothing fits",
                       "dptrain " + " ".join(COMMAND))
            fit = [c for c in row if c["strategy"]]
            if fit:
                s.keep("%s %s" % (model, link), {"samples_per_s": [c["samples_per_s"] for c in fit], "aco": [c["aco"] for c in fit]},
                       {"model": model, "link": link, "strategies": " ".join(c["strategy"] for c in fit)})
    fit = [c for c in cells if c["strategy"]]
    same = sum(c["strategy"] == rule(c) for c in fit)
    s.tool(*COMMAND, "--out", "%s/map.svg" % s.out)
    s.notes.append("Steps of the charts are the batches %s. The drawing is `map.svg`." % ", ".join(map(str, batches)))
    s.fact("PDP with much communication below 10 B, DDP with little below 3 B, else FSDP", "confirmed" if same >= 0.9 * len(fit) else "not confirmed",
           "%d of the %d cells that fit (plan)" % (same, len(fit)))
    pdp = [c for c in fit if c["strategy"] == "pdp"]
    s.fact("PDP pays only on a slow link", "confirmed" if pdp and all(c["link"] == "slow" for c in pdp) else "not confirmed",
           "PDP wins %d cells, all on the slow link (plan)" % len(pdp))
    large = [c for c in fit if c["parameters"] > 10e9]
    s.fact("FSDP alone fits the largest models", "confirmed" if large and all(c["strategy"] == "fsdp" for c in large) else "not confirmed",
           "%d of %d cells above 10 B (plan)" % (sum(c["strategy"] == "fsdp" for c in large), len(large)))
