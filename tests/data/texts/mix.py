#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixes of token sets: a run continues bit for bit after SIGKILL, whatever the number of ranks; the mix is recorded; an
impossible mix is refused."""
import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(os.environ.get("builddir", "."))
DPTRAIN = os.path.join(BUILD, "dptrain")
DPTRACK = os.path.join(BUILD, "dptrack")
SMALL = ["--model", "gpt2-124m", "--n-layer", "1", "--n-head", "2", "--n-embd", "16", "--block-size", "16", "--backend", "ref",
         "--deterministic", "-b", "2", "--global-batch-size", "4", "--lr", "0.1", "--precision", "fp64"]
STEPS = 60


def start(*flags):
    return subprocess.Popen([DPTRAIN, *SMALL, *flags], cwd=tmp, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def run(*flags, code=0):
    p = start(*flags)
    out, said = p.communicate(timeout=100)
    assert p.returncode == code, (flags, p.returncode, out, said)
    return said


def write(name, text):
    os.makedirs(f"{tmp}/{name}", exist_ok=True)
    with open(f"{tmp}/{name}/a.txt", "w", encoding="ascii") as f:
        f.write(text)


def recorded(name):
    """The run's record of its training input."""
    out = subprocess.run([DPTRACK, "show", name, "--logdir", f"{tmp}/runs", "--json"], capture_output=True, text=True, timeout=60, check=True)
    run_ = json.loads(out.stdout)
    inputs = [i for i in run_["inputs"] if i["context"] == "training"]
    return run_["params"], json.loads(inputs[0]["profile"]) if isinstance(inputs[0]["profile"], str) else inputs[0]["profile"]


def weights(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        f.read(n)
        return f.read()


def killed(name, mixed, undisturbed):
    """SIGKILL at two random steps, mid-epoch; the last part continues with two ranks."""
    flags = [*mixed, "--run-name", name, "--runs-dir", "runs", "--save-steps", "7", "--resume", "auto", "--max-steps", str(STEPS)]
    for _ in range(2):
        p = start(*flags, "--print-freq", "1")
        steps = random.randrange(9, 30)
        for line in p.stdout:
            steps -= "loss" in line
            if steps <= 0:
                break
        p.send_signal(signal.SIGKILL)
        p.communicate(timeout=60)
        assert p.returncode == -signal.SIGKILL, "the run ended before it was killed"
    run(*flags, "--save-weights", f"{name}.safetensors", "--nproc-per-node", "2")
    assert weights(f"{tmp}/{name}.safetensors") == undisturbed, "weights after kills differ"


def refused(words, *flags):
    said = run(*flags, "--max-steps", "1", code=2)
    assert words in said and len(said.splitlines()) == 1, (words, said)


def main():
    random.seed(os.environ.get("SEED", "3"))
    write("news", "To be, or not to be, that is the question.\n" * 30)
    write("code", "int main(void) { return 0; }\n" * 10)
    write("small", "ab" * 20)
    mixed = ["--data-path", f"{tmp}/news::{tmp}/code::{tmp}/small", "--mix", "0.6,0.3,0.1", "--epoch-samples", "50"]
    run(*mixed, "--run-name", "whole", "--runs-dir", "runs", "--max-steps", str(STEPS), "--save-weights", "whole.safetensors")
    killed("killed", mixed, weights(f"{tmp}/whole.safetensors"))
    params, profile = recorded("killed")
    assert params["data_shuffle"] == "mix" and params["mix"] == "0.6,0.3,0.1" and params["data_format"] == "mix", params
    assert [(p["samples"], p["weight"]) for p in profile["parts"]] == [(76, 0.6), (17, 0.3), (3, 0.1)], profile
    mixed[3] = "0.6,0.3"
    refused("2 weights for the 3 sets", *mixed)
    mixed[3] = "0.6,0.3,x"
    refused("weight 3: expected a number", *mixed)
    refused("names only one set", "--data-path", f"{tmp}/news", "--mix", "1")
    refused("needs --mix", "--data-path", f"{tmp}/news", "--epoch-samples", "5")
    refused("a mix defines its own order", *mixed[:2], "--mix", "1,1,1", "--shuffle", "global")
    print("mix: passed")


with tempfile.TemporaryDirectory(prefix="dptrain-mix-") as tmp:
    main()
