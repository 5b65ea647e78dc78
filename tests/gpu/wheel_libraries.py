#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel dptrack-trainer with a CUDA module, installed: its command finds the libraries of NVIDIA's wheels next to it; without
them, or without a GPU, it says so in one line. With the module of the fake device, and fakes in the places of NVIDIA's wheels. The
real module, where it was built, keeps the wheel below its limit."""
import os
import re
import subprocess
import sys
import sysconfig
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "train"), os.path.join(HERE, "..", "..", "web", "deploy", "release")]
sys.dont_write_bytecode = True
import wheel_file
import wheels
from helper import BUILD, Folder, check, environment, finish, skip

FAKE = os.path.join(BUILD, "tests", "fakes", "cuda", ".libs")
PLACES = {"cu13": "libcublasLt.so.13", "cudnn": "libcudnn.so.9", "nccl": "libnccl.so.2"}  # of NVIDIA's wheels
NET = ["--model", "gpt2-124m", "--n-layer", 1, "--n-head", 2, "--n-embd", 16, "--block-size", 8, "--vocab-size", 32, "--synthetic",
       "--seq-len", 8, "-b", 2, "--max-steps", 1, "--backend", "cuda", "--nproc-per-node", 2]


class Stripped:
    """In place of strip and patchelf: the environment has the library search path."""

    def binary(self, path, search):
        with tempfile.NamedTemporaryFile() as f:
            subprocess.run(["strip", "--strip-unneeded", "-o", f.name, path], check=True)
            with open(f.name, "rb") as stripped:
                return stripped.read(), 0o755


def write_wheel(folder, module):
    """A wheel of this build's program with that CUDA module."""
    root, program = os.path.join(folder, "root"), os.path.join(BUILD, ".libs", "dptrain")
    path = os.path.join(folder, "dptrack_trainer-%s-py3-none-linux_x86_64.whl" % wheels.project.version())
    for place, data in (("/dptrain", program if os.path.exists(program) else os.path.join(BUILD, "dptrain")),
                        ("/.libs/dptrain_cuda.so", module)):
        os.makedirs(os.path.dirname(root + place), exist_ok=True)
        os.symlink(data, root + place)
    for place in wheels.manual_paths("dptrain"):
        os.makedirs(os.path.dirname(f"{root}/usr/{place}"), exist_ok=True)
        with open(f"{root}/usr/{place}", "w"):
            pass
    wheel_file.write(path, wheels.trainer_files(root, root, {}, Stripped()), 1700000000)
    return path


def lonely_module(folder):
    """The fake module without what its build knows of the fake libraries' place."""
    path, built = os.path.join(folder, "dptrain_cuda.so"), os.path.realpath(FAKE).encode()
    with open(os.path.join(FAKE, "dptrain_cuda.so"), "rb") as f, open(path, "wb") as out:
        out.write(f.read().replace(built, b"/nowhere".ljust(len(built), b"x")))
    libraries = os.path.join(folder, "loaded")  # what the module is linked with
    os.makedirs(libraries)
    os.symlink(os.path.join(FAKE, "libdevice.so"), os.path.join(libraries, "libdevice.so"))
    return path, libraries


def install(folder, wheel):
    venv = os.path.join(folder, "venv")
    made = subprocess.run([sys.executable, "-m", "venv", venv], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if made.returncode:
        skip("no virtual environment: " + made.stdout.strip().splitlines()[-1])
    subprocess.run([venv + "/bin/pip", "install", "-q", "--no-deps", "--no-index", "--disable-pip-version-check", "--force-reinstall", wheel], check=True)
    return venv


def packages_of(venv):
    return sysconfig.get_path("purelib", vars={"base": venv, "platbase": venv})


def run(venv, libraries, *flags, **env):
    """The installed command; returns its exit code and output."""
    p = subprocess.run([venv + "/bin/dptrain", *map(str, flags)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True,
                       timeout=100, env=environment({"LD_LIBRARY_PATH": "%s:%s" % (libraries, os.path.join(BUILD, ".libs")),
                                                     "XDG_CACHE_HOME": "/dev/null", **env}))
    return p.returncode, p.stdout


def lay_libraries(packages):
    """Puts the fakes where NVIDIA's wheels have their libraries."""
    for part, name in PLACES.items():
        folder, library = os.path.join(packages, "nvidia", part, "lib"), os.path.realpath(os.path.join(FAKE, name))
        os.makedirs(folder)
        if os.path.exists(library):  # the others had no headers, and the module does not look for them
            os.symlink(library, os.path.join(folder, name))


def finds_libraries(tmp):
    module, libraries = lonely_module(tmp)
    venv = install(tmp, write_wheel(tmp, module))
    two = {"DPTRAIN_FAKE_DEVICES": "2"}
    code, said = run(venv, libraries, *NET, "--runs-dir", tmp + "/without", **two)
    lines = re.findall("^dptrain: error: .*NCCL .libnccl.so.2. not found: .*pip install nvidia-nccl-cu13==.*$", said, re.M)
    check(code == 1 and len(lines) == 1, "without NVIDIA's wheels: exit %d: %s" % (code, said))
    lay_libraries(packages_of(venv))
    code, said = run(venv, libraries, *NET, "--runs-dir", tmp + "/with", **two)
    check(code == 0 and "not found" not in said, "with NVIDIA's wheels: exit %d: %s" % (code, said))
    code, said = run(venv, libraries, *NET, "--runs-dir", tmp + "/none", DPTRAIN_FAKE_DRIVER="0")
    lines = re.findall("^dptrain: error: (.*)$", said, re.M)
    check(code == 1 and len(lines) == 1 and "no NVIDIA driver is installed" in lines[0], "without a driver: exit %d: %s" % (code, said))


def real_module(tmp):
    module = os.path.join(BUILD, ".libs", "dptrain_cuda.so")
    if not os.path.exists(module):
        print("skipped: the wheel with the real module (it was not built)")
        return
    wheel = write_wheel(tmp, module)
    size = os.path.getsize(wheel) / 1e6
    print("a wheel with the real CUDA module: %.1f MB" % size)
    check(size < wheels.LIMIT_MB["dptrack-trainer"], "the wheel has %.1f MB" % size)
    venv = install(tmp, wheel)
    code, said = run(venv, tmp, "backends")
    lines = [line for line in said.splitlines() if line.startswith("cuda")]
    check(code == 0 and len(lines) == 1, "dptrain backends: exit %d: %s" % (code, said))
    if not os.path.exists("/proc/driver/nvidia"):
        check("no NVIDIA driver is installed" in lines[0], "without a driver: %s" % lines)


def main():
    absent = [name for name in ("dptrain_cuda.so", PLACES["nccl"]) if not os.path.exists(os.path.join(FAKE, name))]
    if absent:
        skip("%s: the fakes of NVIDIA's libraries were not built" % absent[0])
    with Folder() as tmp:
        finds_libraries(tmp)
    with Folder() as tmp:
        real_module(tmp)
    finish("wheel_libraries")


main()
