# SPDX-License-Identifier: Apache-2.0
"""Installs what `make wheels` and `make deb` left below a build folder into bare roots."""
import glob
import json
import os
import shutil
import socket
import subprocess

import debian


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


def test(args, log, what):
    root = debian.machine(args.release, args.name)
    place(root, made(args.build, what), os.path.join(debian.HERE, what + ".sh"), os.path.join(debian.HERE, "installed.sh"))
    failed = root.run(["sh", what + ".sh", what], log)
    if not failed:
        debian.remove(root.folder)
    return failed


def wheels(args, log):
    """Returns True on a failure. pip installs both wheels without the network and without a compiler."""
    return test(args, log, "wheels")


def deb(args, log):
    """Returns True on a failure. apt installs, upgrades, removes and purges the packages."""
    return test(args, log, "deb")


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
