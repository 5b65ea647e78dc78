#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes dptrack (server, page and command line) as one file that runs without any other: static.py BUILD. BUILD/release/static has a
file for each processor, and the licences of the libraries in them. They are built as the wheels' programs are, with musl."""
import os
import re
import shutil
import sys

import programs
import project
import static_libraries
import wheels

LIMIT_MB = 12


def check_alone(path):
    """Fails unless the kernel starts the program without a loader or libraries, and threads get a stack."""
    said = project.run(["readelf", "-dlW", path], env={**os.environ, "LC_ALL": "C"})
    stack = re.search(r"GNU_STACK +(?:0x\w+ +){4}(0x\w+)", said)
    if "INTERP" in said or "(NEEDED)" in said or not stack or int(stack[1], 16) < 1 << 20:
        raise project.Failure(f"{path} does not run alone: {said}")


def make_file(system, out, native):
    """Makes the file for a system, with the page of the build folder native; returns its path."""
    system.prepare()
    path = f"{out}/static/dptrack-{project.version()}-linux-{system.processor}"
    os.makedirs(os.path.dirname(path), exist_ok=True)
    shutil.copyfile(programs.build_for(system, out, native) + "/dptrack", path)
    os.chmod(path, 0o755)
    check_alone(path)
    wheels.measured(path, LIMIT_MB)
    return path


def make_files(out):
    """Returns {name of a file: the packages of the libraries in it}; out/c has been built."""
    shutil.rmtree(out + "/static", ignore_errors=True)
    systems = [static_libraries.System(processor, "musl") for processor in wheels.PROCESSORS]
    names = [os.path.basename(make_file(system, out, out + "/c")) for system in systems]
    texts = systems[0].licences()
    with open(f"{out}/static/dptrack-{project.version()}-linux-licences.txt", "wb") as f:
        for (package, version, _), text in sorted(texts.items()):
            f.write(f"==== {package} {version} ====\n\n".encode() + text + b"\n")
    return dict.fromkeys(names, sorted(texts))


def main():
    try:
        out = os.path.join(os.path.abspath(sys.argv[1]), "release")
        programs.build(out, os.path.abspath(sys.argv[1]))
        make_files(out)
    except project.Failure as why:
        sys.exit(f"static: {why}")


if __name__ == "__main__":
    main()
