"""What the cuda backend refuses, on fake devices that lack something: one line that says what and what to do, and the exit
code; and what `auto` does then."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, finish, skip

UUID = "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae"  # all but the last byte
FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
NCCL = os.path.exists(os.path.join(FAKE, "libnccl.so.2"))
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
    ({"DPTRAIN_FAKE_DEVICES": "3", "DPTRAIN_FAKE_OLD": "2"}, ["--device", 2],
     "backend cuda: device 2 has compute capability 7.5; 8.0 or newer is needed", 1),
    ({}, ["--nproc-per-node", 2],
     "backend cuda: there is 1 GPU for 2 ranks; use --nproc-per-node 1, or --share-gpu, which is correct and slow", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", 5], "--device 5: there are 4 GPUs, numbered from 0", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "0,1"], "--device 0,1: names 2 GPUs for 1 rank; add --nproc-per-node 2", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "1,1", "--nproc-per-node", 2],
     "--device 1,1: names a GPU twice; add --share-gpu, which is correct and slow", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "GPU-00"], "--device GPU-00: no GPU here has this UUID; see nvidia-smi -L", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "first"],
     "--device first: numbers of GPUs, UUIDs (GPU-...) or auto are needed", 2),
    ({"DPTRAIN_FAKE_DRIVER": "0"}, ["--nproc-per-node", "gpu"],
     "--nproc-per-node gpu: there is no usable GPU; `dptrain backends` says why", 2),
    ({"DPTRAIN_FAKE_DEVICES": "2", "DPTRAIN_FAKE_NCCL": "21800"}, ["--nproc-per-node", 2],
     "NCCL 2.18.0 is too old: 2.28 or newer is needed (pip install nvidia-nccl-cu13==2.28.9 brings it)", 1),
]


def testable(rows):
    """Without NCCL's header the module says so wherever several ranks would meet."""
    if NCCL:
        return rows
    print("left out: several ranks on GPUs (the fake of NCCL was not built: no header of NCCL)")
    return [row for row in rows if "--nproc-per-node" not in row[1]]


def refused(folder):
    for env, flags, says, code in testable(REFUSED):
        p = dptrain(*NET, "--backend", "cuda", "--runs-dir", folder, *flags, env={"DPTRAIN_BACKEND_PATH": FAKE, **env})
        name = " ".join("%s=%s" % e for e in env.items())
        lines = [line for line in p.stderr.splitlines() if says in line]
        check(lines, "%s: no line says %r: %s" % (name, says, p.stderr))
        check(p.returncode == code, "%s: exit %d, not %d" % (name, p.returncode, code))


CUDA = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs", "dptrain_cuda.so")
CPU = os.path.join(BUILD, ".libs", "dptrain_cpu.so")

# environment of the fake, flags, the backend, why
AUTO = [
    ({"DPTRAIN_FAKE_DRIVER": "0"}, [], "cpu",
     "--backend auto: cpu, because backend cuda cannot run here: no NVIDIA driver is installed; install driver 580 or newer"),
    ({}, [], "cuda", ""),
    ({}, ["--nproc-per-node", 2], "cpu", "--backend auto: cpu, because backend cuda cannot run here: there is 1 GPU for 2 ranks"),
    ({"DPTRAIN_FAKE_DEVICES": "2", "DPTRAIN_FAKE_NCCL": "21800"}, ["--nproc-per-node", 2], "cpu",
     "--backend auto: cpu, because backend cuda cannot run here: NCCL 2.18.0 is too old"),
    ({"DPTRAIN_FAKE_DEVICES": "2"}, ["--nproc-per-node", 2], "cuda", ""),
    ({}, ["--nproc-per-node", 2, "--share-gpu"], "cuda", ""),
    ({"DPTRAIN_FAKE_DEVICES": "2"}, ["--nproc-per-node", "gpu", "--device", "GPU-%s01,0" % UUID], "cuda", "2 ranks"),
]


def auto(folder):
    """It takes the GPU where all that the ranks need is there; else it says in one line why not."""
    modules = os.path.join(folder, "modules")
    os.mkdir(modules)
    os.symlink(CUDA, os.path.join(modules, "dptrain_cuda.so"))
    if not os.path.exists(CPU):
        print("left out: auto (the cpu module was not built)")
        return
    os.symlink(CPU, os.path.join(modules, "dptrain_cpu.so"))
    for env, flags, backend, why in testable(AUTO):
        p = dptrain(*NET, "--runs-dir", folder, *flags, env={"DPTRAIN_BACKEND_PATH": modules, **env})
        said = p.stdout + p.stderr
        check(p.returncode == 0 and "backend %s" % backend in said and why in said and ("auto:" in said) == (backend != "cuda"),
              "auto, %s %s: exit %d: %s" % (env, flags, p.returncode, said))


FAULT = "cuda: a kernel failed: an illegal memory access was encountered; run it again with CUDA_LAUNCH_BLOCKING=1 in the " \
        "environment and --no-cuda-graphs: node by node, which names it"


def faulty_kernel(folder):
    """Nobody knows which node it was; the second run, node by node, says it: that which the number of its kernel tells."""
    blocking, named = {"CUDA_LAUNCH_BLOCKING": "1"}, []
    for more, env in (([], {}), (["--no-cuda-graphs"], {}), (["--no-cuda-graphs"], blocking)):
        for number in (3, 200):
            p = dptrain(*NET, "--max-steps", 20, "--backend", "cuda", "--runs-dir", folder, *more,
                        env={"DPTRAIN_BACKEND_PATH": FAKE, "DPTRAIN_FAKE_FAULT": str(number), **env})
            check(p.returncode == 1, "kernel %d faults: exit %d: %s" % (number, p.returncode, p.stderr))
            if env:
                named.append(re.search(r"cuda: (\S+): an illegal memory access was encountered$", p.stderr, re.M))
            else:
                check(FAULT in p.stderr, "kernel %d faults: %s" % (number, p.stderr))
    check(all(named) and named[0].group(1) != named[1].group(1), "two nodes are named: %s" % named)


def main():
    if not os.path.exists(os.path.join(FAKE, "dptrain_cuda.so")):
        skip("the fake device was not built (no CUDA toolkit)")
    with Folder() as tmp:
        refused(tmp)
        auto(tmp)
        faulty_kernel(tmp)
    finish("refusals")


main()
