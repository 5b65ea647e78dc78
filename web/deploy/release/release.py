#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a release: release.py BUILD. BUILD/release/dptrack-VERSION has the source, wheels, Debian packages, the image,
CHANGELOG.md, a bill of materials and SHA256SUMS. Two releases of one commit have the same bytes."""
import glob
import json
import os
import shutil
import subprocess
import sys

import deb
import programs
import project
import sbom
import wheels


def make_source(build, target):
    """The tarball, with the page ready-made, in a fixed order and with one time."""
    out = os.path.join(build, "release")
    name = f"dptrack-{project.version()}"
    programs.make(os.path.join(out, "c"), "distdir")
    folder = os.path.join(out, "c")
    words = ["tar", "--sort=name", f"--mtime=@{project.epoch()}", "--owner=0", "--group=0", "--numeric-owner", "--format=pax",
             "--pax-option=exthdr.name=%d/PaxHeaders/%f,delete=atime,delete=ctime", "--mode=u+w,go-w,a+r"]
    project.run([*words, "-C", folder, "-cf", target + ".tar", name])
    project.run(["gzip", "-9", "-n", "-f", target + ".tar"])
    project.run(["chmod", "-R", "u+w", os.path.join(folder, name)])
    shutil.rmtree(os.path.join(folder, name))


def make_image(build):
    """The image's packages, as {package: version}; empty where no image can be made."""
    if os.geteuid() or not shutil.which("umoci") or not shutil.which("debootstrap"):
        print("release: without the image: it needs root, debootstrap and umoci")
        return {}
    script = os.path.join(project.TOP, "web", "deploy", "image.sh")
    subprocess.run(["sh", script, build], check=True)
    with open(os.path.join(build, "release", "image", "packages"), encoding="ascii") as f:
        return dict(line.split() for line in f)


def gather(build, folder):
    """Copies everything that was made into the folder."""
    for pattern in ("wheels/*.whl", "deb/*.deb", "image/*.oci.tar"):
        for path in sorted(glob.glob(os.path.join(build, "release", pattern))):
            shutil.copyfile(path, os.path.join(folder, os.path.basename(path)))
    shutil.copyfile(os.path.join(project.TOP, "NEWS.md"), folder + "/CHANGELOG.md")


def make_release(build):
    os.environ["SOURCE_DATE_EPOCH"] = str(project.epoch())  # one time for all parts of this release
    name = f"dptrack-{project.version()}"
    folder = os.path.join(build, "release", name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    wheels.make_wheels(build)
    deb.make_packages(build)
    image = make_image(build)
    make_source(build, os.path.join(folder, name))
    gather(build, folder)
    with open(os.path.join(build, "release", "bundled.json"), encoding="ascii") as f:
        bundled = json.load(f)
    files = glob.glob(folder + "/*")
    with open(f"{folder}/{name}.cdx.json", "w", encoding="utf-8") as f:
        json.dump(sbom.bill(files, bundled, image), f, indent=1, sort_keys=True)
    with open(folder + "/SHA256SUMS.part", "w", encoding="ascii") as f:
        f.writelines(f"{sbom.digest(path)}  {os.path.basename(path)}\n" for path in sorted(glob.glob(folder + "/[!S]*")))
    os.rename(folder + "/SHA256SUMS.part", folder + "/SHA256SUMS")
    print(f"release: {folder}; two of one commit have the same SHA256SUMS: {sbom.digest(folder + '/SHA256SUMS')[:16]}")


def main():
    try:
        make_release(os.path.abspath(sys.argv[1]))
    except (project.Failure, subprocess.CalledProcessError) as why:
        sys.exit(f"release: {why}")


if __name__ == "__main__":
    main()
