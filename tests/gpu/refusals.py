"""What the cuda backend refuses, on fake devices that lack something: one line that says what and what to do, and the exit
code; and what `auto` does then."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, finish, skip

FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
NET = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32,
       "--synthetic", "--seq-len", 8, "-b", 2, "--max-steps", 1]

# environment of the fake, flags, what the line says, exit code
REFUSED = [
    ({"DPTRAIN_FAKE_DRIVER": "0"}, [], "backend cuda cannot run here: no NVIDIA driver is installed; install driver 580 or newer", 1),
    ({"DPTRAIN_FAKE_DRIVER": "12080"}, [],
     "backend cuda cannot run here: the NVIDIA driver is made for CUDA 12.8; CUDA 13.0 needs driver 580 or newer", 1),
    ({"DPTRAIN_FAKE_DEVICES": "0"}, [], "backend cuda cannot run here: no usable GPU (no CUDA-capable device is detected)", 1),
    ({"DPTRAIN_FAKE_CAPABILITY": "75"}, [],
     "backend cuda cannot run here: device 0 has compute capability 7.5; 8.0 or newer is needed", 1),
    ({"DPTRAIN_FAKE_MEMORY": "400000"}, ["-b", 64], "but the GPU has 0 MiB free; what fits: ", 2),
    ({"DPTRAIN_FAKE_DEVICES": "1"}, ["--nproc-per-node", 2],
     "backend cuda: rank 1 of this machine has no GPU of its own: there is 1; use at most --nproc-per-node 1", 2),
]


def refused(folder):
    for env, flags, says, code in REFUSED:
        p = dptrain(*NET, "--backend", "cuda", "--runs-dir", folder, *flags, env={"DPTRAIN_BACKEND_PATH": FAKE, **env})
        name = " ".join("%s=%s" % e for e in env.items())
        lines = [line for line in p.stderr.splitlines() if says in line]
        check(lines, "%s: no line says %r: %s" % (name, says, p.stderr))
        check(p.returncode == code, "%s: exit %d, not %d" % (name, p.returncode, code))


def auto(folder):
    """Without a usable GPU it computes where it can; with one, there."""
    for env, backend in (({"DPTRAIN_FAKE_DRIVER": "0"}, "backend ref"), ({}, "backend cuda")):
        p = dptrain(*NET, "--precision", "fp64" if env else "fp32", "--runs-dir", folder,
                    env={"DPTRAIN_BACKEND_PATH": FAKE, **env})
        check(p.returncode == 0 and backend in p.stdout + p.stderr, "auto: %s %s" % (p.stdout, p.stderr))


def main():
    if not os.path.exists(os.path.join(FAKE, "dptrain_cuda.so")):
        skip("the fake device was not built (no CUDA toolkit)")
    with Folder() as tmp:
        refused(tmp)
        auto(tmp)
    finish("refusals")


main()
