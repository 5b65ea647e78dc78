# SPDX-License-Identifier: Apache-2.0
"""dptrain plan --auto --catalogue: hours, money and energy follow from the rate, the price and the watts of each machine's
file, which the test computes again; ranks; a machine's best plan is that of plan --auto; every number has a document with a
date or is marked and printed as unverified; refusals. Measures its time."""
import json
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "train"))
from helper import Folder, check, dptrain, finish

FILES = os.path.join(os.environ.get("srcdir", "."), "schema", "hardware")
GPT = ["--model", "gpt2-124m", "--synthetic", "--seq-len", 256]
COSTS = {"by_time": "hours", "by_money": "money", "by_energy": "kwh"}
WANTED = ["t4", "v100", "a100-40gb", "a100-80gb", "l4", "l40s", "h100", "h200", "b200", "xeon", "xeon", "epyc", "epyc"]


def machines():
    found = {}
    for name in os.listdir(FILES):
        if not name.endswith(".schema.json") and name != "prices.json":
            with open(os.path.join(FILES, name), encoding="utf-8") as f:
                found[name[:-5]] = json.load(f)
    return found


def catalogue(env, *more):
    p = dptrain("plan", "--auto", "--catalogue", "--json", *GPT, *more, env=env)
    check(p.returncode == 0, "%s: exit %d: %s" % (more, p.returncode, p.stderr))
    return json.loads(p.stdout)


def costs(known, env):
    start = time.monotonic()
    got = catalogue(env, "--tokens", 10**9, "-b", 4)
    print("the catalogue took %.2f s" % (time.monotonic() - start))
    check(got["samples"] == -(-10**9 // 256) and got["global_batch_size"] == 32, "samples or batch: %s %s" % (got["samples"], got["global_batch_size"]))
    check({r["machine"] for r in got["rows"]} == set(known), "machines: %s" % ({r["machine"] for r in got["rows"]} ^ set(known)))
    for r in got["rows"]:
        h = known[r["machine"]]
        hours = got["samples"] / r["samples_per_s"] / 3600
        kwh = hours * h["watts"] * (1 if h["shared_memory"] else r["ranks"]) / 1000
        check(abs(r["hours"] - hours) < 1e-5 * hours and abs(r["kwh"] - kwh) < 1e-5 * kwh and r["money"] is None and r["by_money"] is None, "%s" % r)
        check(r["unverified"].split(",") == [m for m, o in h["sources"].items() if o["source"] == "unverified"], "%s: unverified: %s" % (r["machine"], r["unverified"]))
    ranked(got)
    return got


def ranked(got):
    for rank, cost in COSTS.items():
        rows = sorted((r for r in got["rows"] if r[rank] is not None), key=lambda r: r[rank])
        check([r[rank] for r in rows] == list(range(1, len(rows) + 1)), "%s: ranks %s" % (rank, [r[rank] for r in rows]))
        check(all(a[cost] <= b[cost] for a, b in zip(rows, rows[1:])), "%s is not in the order of %s" % (rank, cost))
        check(all(r[cost] is None for r in got["rows"] if r[rank] is None), "%s: a cost without a rank" % rank)


def priced(folder, env):
    path = os.path.join(folder, "dptrain", "prices.json")
    os.makedirs(os.path.dirname(path))
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"currency": "EUR", "per_hour": {"h100-x8": 24, "l4-x8": 6.5}}, f)
    got = catalogue(env, "--tokens", 10**9, "-b", 4)
    check(got["currency"] == "EUR" and {r["machine"] for r in got["rows"] if r["money"] is not None} == {"h100-x8", "l4-x8"}, "priced: %s" % got["currency"])
    for r in got["rows"]:
        check(r["money"] is None or abs(r["money"] - r["hours"] * {"h100-x8": 24, "l4-x8": 6.5}[r["machine"]]) < 1e-5 * r["money"], "money: %s" % r)
    ranked(got)
    for text, want in (("{", "prices.json:1"), ('{"currency": "EUR", "per_hour": {"h100-x8": -1}}', "per_hour.h100-x8"), ('{"per_hour": {}}', "currency"),
                       ('{"currency": "", "per_hour": {}, "x": 1}', "unknown member 'x'")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        p = dptrain("plan", "--auto", "--catalogue", *GPT, "--tokens", 1000, env=env)
        check(p.returncode == 2 and want in p.stderr and p.stderr.count("\n") == 1, "%s: exit %d: %s" % (text, p.returncode, p.stderr))
    os.unlink(path)


def like_auto(got, env):
    """The first plan that fits, of the same precision, on one machine."""
    for name, precision in (("a100-40gb-x8", "bf16"), ("v100-32gb-x8", "fp16")):
        p = dptrain("plan", "--auto", "--json", *GPT, "--hardware", name, "--global-batch-size", 32, "--precision", precision, env=env)
        best = min((one for one in json.loads(p.stdout)["plans"] if one["fits"]), key=lambda one: one["step_seconds"])
        row = min((r for r in got["rows"] if r["machine"] == name), key=lambda r: r["hours"])
        check(abs(row["samples_per_s"] * 256 - best["samples_per_s"]) < 1e-3 * best["samples_per_s"] and row["strategy"] == best["strategy"],
              "%s: %s of %g samples/s, plan --auto has %s of %g tokens/s" % (name, row["strategy"], row["samples_per_s"], best["strategy"], best["samples_per_s"]))


def documents(known, env):
    left = sorted(known)
    for word in WANTED:
        name = next((n for n in left if n.startswith(word + "-")), None)
        check(name, "no hardware file for %s" % word)
        left = [n for n in left if n != name]
    said = dptrain("plan", "--auto", "--catalogue", *GPT, "--tokens", 1000, env=env).stdout
    for name, h in known.items():
        numbers = {m for m, v in h.items() if isinstance(v, (int, float)) and not isinstance(v, bool) and m != "ranks_per_node"} | {
            m for m in ("products", "bandwidth", "within", "between") if m in h}
        check(numbers <= set(h["sources"]), "%s: numbers without a source: %s" % (name, sorted(numbers - set(h["sources"]))))
        check(all(o["source"] == "unverified" or o.get("date") for o in h["sources"].values()), "%s: a document without a date" % name)
        words = ",".join(m for m, o in h["sources"].items() if o["source"] == "unverified")
        check("  %s: %s\n" % (name, words) in said, "%s: not printed as unverified: %s" % (name, words))


def refusals(env):
    for flags, want in ((GPT, "use --tokens N"), (["--model", "resnet18", "--synthetic"], "--data-path"),
                        (["--model", "resnet18", "--synthetic", "--tokens", 10], "reads images")):
        p = dptrain("plan", "--auto", "--catalogue", *flags, env=env)
        check(p.returncode == 2 and want in p.stderr and p.stderr.count("\n") == 1, "%s: exit %d: %s" % (flags, p.returncode, p.stderr))


def main():
    known = machines()
    with Folder() as folder:
        env = {"XDG_CONFIG_HOME": folder}
        got = costs(known, env)
        priced(folder, env)
        like_auto(got, env)
        documents(known, env)
        refusals(env)
    finish("catalogue")


main()
