# SPDX-License-Identifier: Apache-2.0
"""A step with a non-finite loss or gradient changes nothing, so it is repeated node by node: the message names the
first node that produced such a number, or read one from a parameter, with op, direction, rank and sample; on one rank
and two, with one micro-batch per step and several. The existing part of the message still names the step and the
batch."""
import array
import math
import os
import re

from helper import Folder, check, dptrain, fast, finish, safetensors, write_safetensors

N, PIXELS = 8, 3 * 16 * 16
MADE = r"\S+ \(\w+, forward\) was the first to make (nan|an infinite number) of finite numbers, on "
NET = ["--model", "resnet20", "--threads", 1, "--max-steps", 2, "--lr", 0.001, "--lr-scheduler", "constant", "--report-to", "none"]


def batch(path, spoilt=None):
    """A small batch; sums of sample `spoilt` overflow (a non-finite number is refused when the file is read)."""
    images = array.array("f", [math.sin(0.37 * i) for i in range(N * PIXELS)])
    if spoilt is not None:
        images[spoilt * PIXELS:(spoilt + 1) * PIXELS] = array.array("f", [3e38] * PIXELS)
    write_safetensors(path, [("images", "F32", (N, 3, 16, 16), images.tobytes()),
                             ("labels", "I64", (N,), array.array("q", [i % 10 for i in range(N)]).tobytes())])
    return ["--batch-from", path, "--classes", 10]


def spoil_weights(path, name):
    tensors = []
    for key, (shape, values) in safetensors(path).items():
        if key == name:
            values[7] = math.inf
        tensors.append((key, "F32" if values.typecode == "f" else "I64", shape, values.tobytes()))
    write_safetensors(path, tensors)


def named(what, want, *flags, env=None, when="at step 1,"):
    p = dptrain(*NET, *flags, env=env)
    said = p.stderr.strip().splitlines()[-1] if p.stderr.strip() else ""
    check(p.returncode == 1 and when in p.stderr and re.search(want, p.stderr), "%s: exit %d, %s wanted: %s" % (what, p.returncode, want, said))


def recorded(what, runs, title, *flags, env=None):
    """The cause is an alert of the run, once, whichever rank found it."""
    p = dptrain(*NET, *flags, "--runs-dir", runs, env=env)
    journals = [os.path.join(folder, name) for folder, _, names in os.walk(runs) for name in names if name.startswith("events.") or name.endswith(".journal")]
    found = []
    for path in journals:
        with open(path, "rb") as f:
            found.append(f.read())
    alerts = sum(data.count(title) for data in found)
    check(p.returncode == 1 and alerts == 1 and any(title in data and b"was the first to make" in data for data in found),
          "%s: exit %d, %d alerts: %s" % (what, p.returncode, alerts, p.stderr))


def loss_scaled(tmp, clean):
    """fp16: a loss that is not finite ends the run after ten steps, as a smaller loss scale cannot repair it; gradients
    that are never finite end it when the scale has fallen below 1."""
    base = [*NET, *clean, "--backend", "cpu", "--precision", "fp16", "--max-steps", 42]
    p = dptrain(*base, "--lr", 1e3, "--runs-dir", os.path.join(tmp, "hot"))
    steps = [int(n) for n in re.findall(r"at step (\d+),|last of them step (\d+)", p.stderr) for n in n if n]
    check(p.returncode == 1 and steps and steps[0] <= 20, "fp16 with a loss of nan: exit %d: %s" % (p.returncode, p.stderr))
    p = dptrain(*base, "--runs-dir", os.path.join(tmp, "spoilt"), env={"DPTRAIN_TEST_NAN": "0:layer3.2.conv1.dx"})
    check(p.returncode == 1 and "27 steps in a row" in p.stderr, "fp16 with gradients of nan: exit %d: %s" % (p.returncode, p.stderr))


def main():
    with Folder() as tmp:
        clean, path = batch(os.path.join(tmp, "clean.safetensors")), os.path.join(tmp, "spoilt.safetensors")
        runs, weights = ["--runs-dir", os.path.join(tmp, "runs")], os.path.join(tmp, "weights.safetensors")
        named("a sample", MADE + r"rank 0, in sample 5 of its batch \(number 5 of the set\)", *batch(path, 5), *runs)
        named("a sample of the second rank", MADE + r"rank 1, in sample 2 of its batch \(number 6 of the set\)", *batch(path, 6),
              "--nproc-per-node", 2, *runs)
        named("a sample of a later micro-batch", MADE + r"rank 0, in sample 1 of micro-batch", *batch(path, 5), "--grad-accum-steps", 2, *runs)
        p = dptrain(*NET, *clean, *runs, "--save-weights", weights)
        check(p.returncode == 0, "a clean run: %s" % p.stderr)
        spoil_weights(weights, "layer2.1.conv1.weight")
        for ranks in (1, 2):
            named("a weight, %d ranks" % ranks, r"layer2\.1\.conv1\.weight holds an infinite number on rank 0, which layer2\.1\.conv1\S* "
                  r"\(\w+, forward\) reads first", *clean, *runs, "--init-from", weights, "--nproc-per-node", ranks)
        named("a kernel", r"layer3\.2\.conv1\.dx \(conv_dgrad, backward\) was the first to make nan of finite numbers, on rank 1, in sample 3",
              *clean, *runs, "--nproc-per-node", 2, "--max-steps", 12, env={"DPTRAIN_TEST_NAN": "1:layer3.2.conv1.dx"}, when="in 10 steps in a row")
        recorded("loss", os.path.join(tmp, "alerts"), b"loss nan at step 1", *batch(path, 5))
        recorded("two ranks", os.path.join(tmp, "alerts2"), b"gradients not finite at step", *clean, "--nproc-per-node", 2, "--max-steps", 12,
                 env={"DPTRAIN_TEST_NAN": "1:layer3.2.conv1.dx"})
        if "fp16" in "".join(line for line in dptrain("backends").stdout.splitlines() if line.startswith("cpu")) and "cpu" in fast():
            loss_scaled(tmp, clean)
    finish("nonfinite")


if __name__ == "__main__":
    main()
