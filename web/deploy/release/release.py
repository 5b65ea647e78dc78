#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes a release: release.py BUILD. BUILD/release/dptrack-VERSION has the source, wheels with an index of them, the static files, Debian
packages, the image, CHANGELOG.md, a bill of materials and SHA256SUMS. Two releases of one commit have the same bytes."""
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
import static
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
    for pattern in ("wheels/*.whl", "static/*", "deb/*.deb", "image/*.oci.tar"):
        for path in sorted(glob.glob(os.path.join(build, "release", pattern))):
            shutil.copyfile(path, os.path.join(folder, os.path.basename(path)))
    shutil.copyfile(os.path.join(project.TOP, "NEWS.md"), folder + "/CHANGELOG.md")


def write_page(path, links):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii") as f:
        f.write("<!DOCTYPE html>\n" + "".join(f'<a href="{address}">{name}</a>\n' for address, name in links))


def write_index(folder):
    """simple/: the wheels for `pip --index-url` (PEP 503); hashes.txt: for `pip --require-hashes`."""
    names = sorted(os.path.basename(path) for path in glob.glob(folder + "/*.whl"))
    hashes = {name: sbom.digest(f"{folder}/{name}") for name in names}
    projects = {name.partition("-")[0].replace("_", "-") for name in names}
    write_page(folder + "/simple/index.html", [(f"{one}/", one) for one in sorted(projects)])
    for one in projects:
        own = [name for name in names if name.startswith(one.replace("-", "_") + "-")]
        write_page(f"{folder}/simple/{one}/index.html", [(f"../../{name}#sha256={hashes[name]}", name) for name in own])
    with open(folder + "/hashes.txt", "w", encoding="ascii") as f:
        own = [name for name in names if name.startswith("dptrack-")]
        f.write(f"dptrack=={project.version()}" + "".join(f" --hash=sha256:{hashes[name]}" for name in own) + "\n")


def make_release(build):
    os.environ["SOURCE_DATE_EPOCH"] = str(project.epoch())  # one time for all parts of this release
    name = f"dptrack-{project.version()}"
    folder = os.path.join(build, "release", name)
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    wheels.make_wheels(build)
    static_files = static.make_files(os.path.join(build, "release"))
    deb.make_packages(build)
    image = make_image(build)
    make_source(build, os.path.join(folder, name))
    gather(build, folder)
    write_index(folder)
    with open(os.path.join(build, "release", "bundled.json"), encoding="ascii") as f:
        bundled = json.load(f) | static_files
    files = [path for path in glob.glob(folder + "/*") if os.path.isfile(path)]
    bill = f"{folder}/{name}.cdx.json"
    with open(bill, "w", encoding="utf-8") as f:
        json.dump(sbom.bill(files, bundled, image), f, indent=1, sort_keys=True)
    with open(folder + "/SHA256SUMS.part", "w", encoding="ascii") as f:
        f.writelines(f"{sbom.digest(path)}  {os.path.relpath(path, folder)}\n" for path in sorted([*files, bill, *glob.glob(folder + "/simple/**/*.html", recursive=True)]))
    os.rename(folder + "/SHA256SUMS.part", folder + "/SHA256SUMS")
    print(f"release: {folder}; two of one commit have the same SHA256SUMS: {sbom.digest(folder + '/SHA256SUMS')[:16]}")


def main():
    try:
        make_release(os.path.abspath(sys.argv[1]))
    except (project.Failure, subprocess.CalledProcessError) as why:
        sys.exit(f"release: {why}")


if __name__ == "__main__":
    main()
