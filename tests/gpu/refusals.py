# SPDX-License-Identifier: Apache-2.0
"""Refusals of the cuda backend, on fake devices that lack something: one line with the problem and its solution, and
the exit code; and the choice of `auto` then."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "train"))
from helper import BUILD, Folder, check, dptrain, finish, skip

UUID = "a0a1a2a3-a4a5-a6a7-a8a9-aaabacadae"  # all but the last byte
os.environ["XDG_CACHE_HOME"] = "/dev/null"  # the fakes must not use the user's cache
FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
NCCL = os.path.exists(os.path.join(FAKE, "libnccl.so.2"))
NET = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32,
       "--synthetic", "--seq-len", 8, "-b", 2, "--max-steps", 1]

HOST = "backend cuda cannot run here: "
OLD = "compute capability 7.5: 8.0 or newer is required"
# Its plan has 25 MiB, with the workspaces that the fakes of the libraries request.
LARGE = ["--n-embd", 64, "--vocab-size", 8192, "-b", 64]
FITS = "what fits: --batch-size 32 --grad-accum-steps 2 (18 MiB)"
PLANNED = all(os.path.exists(os.path.join(FAKE, name)) for name in ("libcudnn.so.9", "libcublasLt.so.13"))
GIB_8 = 8 << 30

# environment of the fake, flags, the line, exit code
REFUSED = [
    ({"DPTRAIN_FAKE_DRIVER": "0"}, [], HOST + "no NVIDIA driver is installed: install driver 580 or newer", 1),
    ({"DPTRAIN_FAKE_DRIVER": "12080"}, [], HOST + "the NVIDIA driver supports only CUDA 12.8: CUDA 13.0 needs driver 580 or newer", 1),
    ({"DPTRAIN_FAKE_DEVICES": "0"}, [], HOST + "no usable GPU (no CUDA-capable device is detected)", 1),
    ({"DPTRAIN_FAKE_CAPABILITY": "75"}, [], HOST + "device 0 has " + OLD, 1),
    ({"DPTRAIN_FAKE_DEVICES": "3", "DPTRAIN_FAKE_OLD": "2"}, ["--device", 2], "backend cuda: device 2 has " + OLD, 1),
    ({"DPTRAIN_FAKE_MEMORY": str(20 << 20)}, LARGE, "the plan needs 25 MiB, but the GPU has 20 of 20 MiB free; " + FITS, 2),
    ({"DPTRAIN_FAKE_TAKEN": str(GIB_8 - (20 << 20))}, LARGE, "the plan needs 25 MiB, but the GPU has 20 of 8192 MiB free: other "
     "processes use its memory (see nvidia-smi); " + FITS, 2),
    ({"DPTRAIN_FAKE_TAKEN_LATER": str(GIB_8 - (20 << 20))}, LARGE, "cuda: the plan needs 25 MiB on the GPU, but only 20 of 8192 "
     "MiB are free now: other processes use its memory (nvidia-smi lists them)", 1),
    ({}, ["--nproc-per-node", 2],
     "backend cuda: there is 1 GPU for 2 ranks: use --nproc-per-node 1, or --share-gpu, which is slow but correct", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", 5], "--device 5: there are 4 GPUs, numbered from 0", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "0,1"], "--device 0,1: lists 2 GPUs for 1 rank: add --nproc-per-node 2", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "1,1", "--nproc-per-node", 2],
     "--device 1,1: lists a GPU twice: add --share-gpu, which is slow but correct", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "GPU-00"], "--device GPU-00: no GPU here has this UUID: see nvidia-smi -L", 2),
    ({"DPTRAIN_FAKE_DEVICES": "4"}, ["--device", "first"],
     "--device first: expected GPU numbers, UUIDs (GPU-...) or auto", 2),
    ({"DPTRAIN_FAKE_DRIVER": "0"}, ["--nproc-per-node", "gpu"],
     "--nproc-per-node gpu: there is no usable GPU; `dptrain backends` says why", 2),
    ({"DPTRAIN_FAKE_DEVICES": "2", "DPTRAIN_FAKE_NCCL": "21800"}, ["--nproc-per-node", 2],
     "NCCL 2.18.0 is too old: install 2.28 or newer (pip install nvidia-nccl-cu13==2.28.9 provides it)", 1),
]


def testable(rows):
    """Rows that can be tested: without NCCL's header the module reports that for several ranks; without the others' it
    plans differently."""
    if not NCCL:
        print("skipped: several ranks on GPUs (the fake of NCCL was not built: no header of NCCL)")
        rows = [row for row in rows if "--nproc-per-node" not in row[1]]
    if not PLANNED:
        print("skipped: sizes of plans (the fakes of cuDNN and cuBLASLt were not built: no headers)")
        rows = [row for row in rows if row[1] is not LARGE]
    return rows


def said_by(p):
    """Returns errors and warnings, without the program's name."""
    return [line.split(": ", 2)[2] for line in p.stderr.splitlines() if re.match("dptrain: (error|warning): ", line)]


def refused(folder):
    """--backend cuda never chooses another backend: it prints one line and exits."""
    for env, flags, line, code in testable(REFUSED):
        p = dptrain(*NET, "--backend", "cuda", "--runs-dir", folder, *flags, env={"DPTRAIN_BACKEND_PATH": FAKE, **env})
        name = " ".join("%s=%s" % e for e in env.items())
        check(said_by(p) == [line], "%s: the line is %r, not %s" % (name, line, p.stderr))
        check(p.returncode == code, "%s: exit %d, not %d" % (name, p.returncode, code))


PRODUCTS = "products without cuBLASLt are far slower: cuBLASLt "
CONVOLUTIONS = "convolutions without cuDNN are far slower: cuDNN "
BLAS_PIN, DNN_PIN, NCCL_PIN = "nvidia-cublas==13.1.0.3", "nvidia-cudnn-cu13==9.19.0.56", "nvidia-nccl-cu13==2.28.9"
MISSING = "(%s) not found: set DPTRAIN_CUDA_LIBS to its folder (pip install %s provides it)"


def module_alone(folder):
    """The module without its libraries: a copy that searches for them, and the loader with it, in folders that do not
    exist, with what it is linked with."""
    with open(os.path.join(FAKE, "dptrain_cuda.so"), "rb") as f:
        binary = f.read()
    built = os.path.realpath(FAKE).encode()
    check(built in binary, "the module knows where its libraries are")
    os.mkdir(folder)
    with open(os.path.join(folder, "dptrain_cuda.so"), "wb") as f:
        f.write(binary.replace(built, b"/nowhere".ljust(len(built), b"x")))
    os.symlink(os.path.join(FAKE, "libdevice.so"), os.path.join(folder, "libdevice.so"))
    return {"DPTRAIN_BACKEND_PATH": folder, "LD_LIBRARY_PATH": folder, "DPTRAIN_FAKE_DEVICES": "2"}


def libraries(folder):
    """Without a library that only makes it faster it runs, and prints the cost; without NCCL several ranks are
    impossible."""
    alone = module_alone(os.path.join(folder, "alone"))
    old = {"DPTRAIN_BACKEND_PATH": FAKE, "DPTRAIN_FAKE_CUBLASLT_VERSION": "120000", "DPTRAIN_FAKE_CUDNN_VERSION": "80000"}
    rows = [
        (alone, [], "backend cuda: %s%s; %s%s" % (PRODUCTS, MISSING % ("libcublasLt.so.13", BLAS_PIN),
                                                  CONVOLUTIONS, MISSING % ("libcudnn.so.9", DNN_PIN)), 0),
        (old, [], "backend cuda: %s12.0.0 is too old: install 13.0 or newer (pip install %s provides it); %s8.0.0 is too old: "
         "install 9.11 or newer (pip install %s provides it)" % (PRODUCTS, BLAS_PIN, CONVOLUTIONS, DNN_PIN), 0),
        (alone, ["--nproc-per-node", 2], "NCCL " + MISSING % ("libnccl.so.2", NCCL_PIN), 1),
    ]
    if not PLANNED:
        rows = rows[2:]
    for env, flags, line, code in testable(rows):
        p = dptrain(*NET, "--backend", "cuda", "--runs-dir", folder, *flags, env=env)
        check(line in said_by(p), "a missing library: no line is %r: %s" % (line, p.stderr))
        check(p.returncode == code, "%s: exit %d, not %d" % (line, p.returncode, code))


CUDA = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs", "dptrain_cuda.so")
CPU = os.path.join(BUILD, ".libs", "dptrain_cpu.so")

# environment of the fake, flags, the backend, why
AUTO = [
    ({"DPTRAIN_FAKE_DRIVER": "0"}, [], "cpu",
     "--backend auto: cpu, because backend cuda cannot run here: no NVIDIA driver is installed: install driver 580 or newer"),
    ({}, [], "cuda", ""),
    ({}, ["--nproc-per-node", 2], "cpu", "--backend auto: cpu, because backend cuda cannot run here: there is 1 GPU for 2 ranks"),
    ({"DPTRAIN_FAKE_DEVICES": "2", "DPTRAIN_FAKE_NCCL": "21800"}, ["--nproc-per-node", 2], "cpu",
     "--backend auto: cpu, because backend cuda cannot run here: NCCL 2.18.0 is too old"),
    ({"DPTRAIN_FAKE_DEVICES": "2"}, ["--nproc-per-node", 2], "cuda", ""),
    ({}, ["--nproc-per-node", 2, "--share-gpu"], "cuda", ""),
    ({"DPTRAIN_FAKE_DEVICES": "2"}, ["--nproc-per-node", "gpu", "--device", "GPU-%s01,0" % UUID], "cuda", "2 ranks"),
]


def auto(folder):
    """auto uses the GPU if everything that the ranks need is available; otherwise it prints the reason in one line."""
    modules = os.path.join(folder, "modules")
    os.mkdir(modules)
    os.symlink(CUDA, os.path.join(modules, "dptrain_cuda.so"))
    if not os.path.exists(CPU):
        print("skipped: auto (the cpu module was not built)")
        return
    os.symlink(CPU, os.path.join(modules, "dptrain_cpu.so"))
    for env, flags, backend, why in testable(AUTO):
        p = dptrain(*NET, "--runs-dir", folder, *flags, env={"DPTRAIN_BACKEND_PATH": modules, **env})
        said = p.stdout + p.stderr
        reasons = len(re.findall("^--backend auto: ", said, re.M))
        check(p.returncode == 0 and "backend %s" % backend in said and why in said and reasons == (backend != "cuda"),
              "auto, %s %s: exit %d: %s" % (env, flags, p.returncode, said))


FAULT = "cuda: a kernel failed: an illegal memory access was encountered: run again with CUDA_LAUNCH_BLOCKING=1 in the " \
        "environment and --no-cuda-graphs to get its name"


def faulty_kernel(folder):
    """The failing node is unknown at first; the second run, node by node, names it: the node that the kernel's number
    selects."""
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
        libraries(tmp)
        auto(tmp)
        faulty_kernel(tmp)
    finish("refusals")


main()
