# SPDX-License-Identifier: Apache-2.0
"""Builds the C programs once for all packages and installs them below OUT/root, with the features of the build folder
that calls and with flags that leave no path of this machine in them."""
import os
import re
import shlex
import shutil
import subprocess

import project

LIBDIR = "/usr/lib/x86_64-linux-gnu"
CFLAGS = "-O2 -ffile-prefix-map=%s=. -fstack-protector-strong -Wformat -Werror=format-security"
FLAGS = ["--prefix=/usr", "--libdir=" + LIBDIR, "CPPFLAGS=-D_FORTIFY_SOURCE=2", "LDFLAGS=-Wl,-z,relro -Wl,-z,now"]
KEPT = re.compile(r"--with(out)?-\w|(CC|NVCC|NVCCFLAGS|PKG_CONFIG_PATH)=")


def features(build):
    """The arguments of the calling build folder that choose features and compilers."""
    config = os.path.join(build, "config.status")
    said = project.run(["sh", config, "--config"]) if os.path.exists(config) else ""
    return [word for word in shlex.split(said) if KEPT.match(word)]


def configure(folder, arguments):
    mark, wanted = os.path.join(folder, "arguments"), "\n".join(arguments)
    if os.path.exists(mark) and os.path.exists(os.path.join(folder, "Makefile")):
        with open(mark, encoding="utf-8") as f:
            if f.read() == wanted:
                return
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(project.TOP, "configure")):
        project.run(["sh", "./autogen.sh"], cwd=project.TOP)
    source = os.path.relpath(project.TOP, os.path.realpath(folder))
    project.run(["sh", source + "/configure", *arguments], cwd=folder, env={**os.environ, "CONFIG_SHELL": "/bin/sh"})
    with open(mark, "w", encoding="utf-8") as f:
        f.write(wanted)


def make(folder, *words):
    log = os.path.join(folder, "make.log")
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with open(log, "a", encoding="utf-8") as f:
        done = subprocess.run(["make", f"-j{os.cpu_count()}", "CUDA_FOLDERS=", *words], cwd=folder, stdout=f,
                              stderr=subprocess.STDOUT, env=environment, check=False)
    if done.returncode:
        raise project.Failure(f"make {words[0]} failed (log: {log})")


def summary_line(folder, label):
    """What configure's summary says of a feature that is absent."""
    with open(os.path.join(folder, "config.log"), encoding="utf-8", errors="replace") as f:
        found = re.findall(rf"^ *{label} +((?:yes|no).*)$", f.read(), re.MULTILINE)
    return found[-1].removeprefix("no: ") if found else "unknown reason"


def build(out, outer):
    """Returns the root with installed programs, and why the CUDA module is absent (empty: it is there)."""
    folder, root = os.path.join(out, "c"), os.path.join(out, "root")
    configure(folder, [*features(outer), *FLAGS, "CFLAGS=" + CFLAGS % project.TOP])
    make(folder, "all")
    shutil.rmtree(root, ignore_errors=True)
    make(folder, "install", "DESTDIR=" + os.path.abspath(root))
    with_cuda = os.path.exists(f"{root}{LIBDIR}/dptrack/dptrain_cuda.so")
    return root, "" if with_cuda else summary_line(folder, "cuda backend")
