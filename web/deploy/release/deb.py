#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the Debian packages for the Debian on which it runs: deb.py BUILD. Their files are in BUILD/release/deb.

dpkg-buildpackage works in a copy of web/deploy/debian, with the programs of programs.py next to it; lintian checks the result.
web/deploy/needs.sh names what is missing."""
import email.utils
import glob
import os
import re
import shutil
import subprocess
import sys

import programs
import project

sys.path.insert(0, os.path.join(project.TOP, "tracker", "python"))
sys.dont_write_bytecode = True
import build_dptrack

DEBIAN = os.path.join(project.TOP, "web", "deploy", "debian")
EXAMPLES = ["dptrack@.service", "haproxy.cfg", "compose.yaml", "kubernetes.yaml"]


def changelog(version):
    """Debian's form of the sections of NEWS.md: one entry, because one version was released so far."""
    maintainer = re.search(r"^Maintainer: (.*)$", project.text("web/deploy/debian/control"), re.MULTILINE)[1]
    when = email.utils.formatdate(project.epoch())
    return f"dptrack ({version}) unstable; urgency=medium\n\n  * See NEWS.md in this folder.\n\n -- {maintainer}  {when}\n"


def install_python(root):
    """The Python package, which loads the library of libdptrack0."""
    packages = os.path.join(root, "usr/lib/python3/dist-packages")
    for name, path in build_dptrack.package_files():
        target = os.path.join(packages, name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        shutil.copyfile(path, target)
    info = f"{packages}/dptrack-{project.version()}.dist-info"
    os.makedirs(info)
    with open(info + "/METADATA", "w", encoding="utf-8") as f:
        f.write(f"Metadata-Version: 2.1\nName: dptrack\nVersion: {project.version()}\nSummary: {project.SUMMARIES['dptrack']}\n"
                f"License: {project.LICENCE}\n")
    with open(info + "/INSTALLER", "w", encoding="ascii") as f:
        f.write("debian\n")


def strip(root):
    for path in [root + "/usr/bin/dptrack", root + "/usr/bin/dptrain", *glob.glob(f"{root}{programs.LIBDIR}/*.so*"),
                 *glob.glob(f"{root}{programs.LIBDIR}/dptrack/*.so")]:
        if not os.path.islink(path):
            project.run(["strip", "--strip-unneeded", "--remove-section=.comment", "--remove-section=.note", path])


def stage(root, folder, version):
    """A folder for dpkg-buildpackage."""
    shutil.copytree(root, folder + "/root", symlinks=True)
    for path in glob.glob(folder + "/root/**/*.la", recursive=True):
        os.remove(path)
    strip(folder + "/root")
    install_python(folder + "/root")
    shutil.copytree(DEBIAN, folder + "/debian")
    os.makedirs(folder + "/examples")
    for name in EXAMPLES:
        shutil.copyfile(os.path.join(project.TOP, "web", "deploy", name), f"{folder}/examples/{name}")
    shutil.copyfile(os.path.join(project.TOP, "NEWS.md"), folder + "/NEWS.md")
    with open(folder + "/debian/changelog", "w", encoding="utf-8") as f:
        f.write(changelog(version))
    when = project.epoch()
    for place, folders, names in os.walk(folder):  # dpkg only replaces times after that of the commit
        for name in folders + names:
            os.utime(os.path.join(place, name), (when, when), follow_symlinks=False)


def check(packages):
    """Prints lintian's warnings; an error is a failure."""
    done = subprocess.run(["lintian", "--allow-root", "--no-tag-display-limit", "--fail-on", "error", *packages],
                          capture_output=True, text=True, check=False)
    sys.stdout.write(done.stdout)
    if done.returncode:
        raise project.Failure("lintian finds errors")


def make_packages(build, version=None):
    """Returns the paths of the packages."""
    root, absent = programs.build(os.path.join(build, "release"), build)
    out, version = os.path.join(build, "release", "deb"), version or project.version()
    work = f"{out}/dptrack-{version}"
    shutil.rmtree(out, ignore_errors=True)
    stage(root, work, version)
    hdf5 = programs.hdf5_library(os.path.join(build, "release"))
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(project.epoch()), "MAKEFLAGS": "", "HDF5": hdf5 and project.owner(hdf5)}
    project.run(["dpkg-buildpackage", "-b", "-us", "-uc", "--no-sign"], cwd=work, env=environment)
    shutil.rmtree(work)
    made = sorted(glob.glob(out + "/*.deb"))
    for path in made:
        print(f"deb: {path} ({os.path.getsize(path) / 1e6:.1f} MB)", flush=True)
    programs.report_absent("deb", absent)
    check(made)
    return made


def main():
    try:
        make_packages(os.path.abspath(sys.argv[1]), *sys.argv[2:3])
    except project.Failure as why:
        sys.exit(f"deb: {why}")


if __name__ == "__main__":
    main()
