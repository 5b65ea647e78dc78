# SPDX-License-Identifier: Apache-2.0
"""Installs what `make wheels`, `make deb` and `make image` left below a build folder into bare roots. Debian packages of
another Debian than this machine's are built in a root first."""
import glob
import json
import os
import shutil
import socket
import subprocess
import sys

import debian
import matrix
import settings

sys.path.append(os.path.join(debian.TOP, "tests"))
import certificate

PACKING = ["build-essential", "debhelper", "dh-python", "lintian", "python3-venv"]


def place(root, *paths):
    """Copies files and folders into the root's home."""
    for path in paths:
        target = os.path.join(root.folder + root.home, os.path.basename(path))
        (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, target)


def made(build, what):
    folder = os.path.join(build, "release", what)
    if not os.path.isdir(folder):
        raise debian.Unavailable(f"{folder} does not exist: run make {what} in {build} first")
    return folder


def fill_packing(release, folder):
    """A root for builds with what make deb needs besides."""
    debian.copied(matrix.tools(release), folder)
    debian.Root(folder).install(PACKING)


def built_there(args, log):
    """Builds the packages in a root of another Debian than this machine's; returns their folder there, or None."""
    source = debian.kept("packing-" + args.release, " ".join(PACKING), lambda folder: fill_packing(args.release, folder))
    root = matrix.builder(args.release, args.name + "-build", source)
    failed = root.run(["sh", "-ec", "cd dptrack && ./autogen.sh >/dev/null 2>&1 && mkdir build && cd build && "
                       "sh ../configure >/dev/null && make deb"], log)
    return None if failed else root.folder + "/root/dptrack/build/release/deb"


def packages(args, log):
    """The folder with packages for this Debian."""
    here = dict(line.split("=", 1) for line in settings.lines_of("/etc/os-release") if "=" in line)
    return made(args.build, "deb") if here.get("VERSION_CODENAME") == debian.CODENAMES[args.release] else built_there(args, log)


def test(args, log, what, folder, *words):
    if folder is None:
        return True
    root = debian.machine(args.release, args.name, processor=args.processor)
    place(root, folder, *(os.path.join(debian.HERE, name) for name in (what + ".sh", "installed.sh", "documents.py", "unit.py")))
    certificate.make(root.folder + root.home, "server")
    failed = root.run(["sh", what + ".sh", what, *words], log)
    if not failed:
        debian.remove(root.folder)
    return failed


def wheels(args, log):
    """Returns True on a failure. pip installs both wheels without the network and without a compiler; those for Debian 11 have no documents,
    and another processor has no trainer."""
    words = ["bare"] * (args.release == "11") + ["far"] * args.far + ["red-hat"] * args.red_hat
    return test(args, log, "wheels", made(args.build, "wheels"), *words)


def deb(args, log):
    """Returns True on a failure. apt installs, upgrades, removes and purges the packages."""
    return test(args, log, "deb", packages(args, log))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def image(args, log):
    """Returns True on a failure. Unpacks the image and starts what its configuration names."""
    (archive,) = glob.glob(os.path.join(made(args.build, "image"), "*.oci.tar"))
    folder = os.path.join(debian.CACHE, "roots", args.name)
    debian.remove(folder)
    os.makedirs(folder + "/layout")
    subprocess.run(["tar", "-xf", archive, "-C", folder + "/layout"], check=True)
    with open(folder + "/layout/index.json", encoding="utf-8") as f:
        tag = json.load(f)["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"]
    subprocess.run(["umoci", "unpack", "--image", f"{folder}/layout:{tag}", folder + "/bundle"], check=True)
    with open(folder + "/bundle/config.json", encoding="utf-8") as f:
        process = json.load(f)["process"]
    root = debian.Root(folder + "/bundle/rootfs")
    place(root, os.path.join(debian.HERE, "image.sh"))
    failed = root.run(["sh", "image.sh", str(free_port()), str(process["user"]["uid"]), *process["args"]], log)
    if not failed:
        debian.remove(folder)
    return failed
