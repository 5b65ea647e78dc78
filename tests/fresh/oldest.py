#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheel dptrack runs on the oldest system that it is for: it is made of this build folder's page, without documents. No ELF file in
it needs a newer glibc than its tag says or a library that is not part of glibc; its program passes tests of what depends on its
libraries; tests/fresh/run installs it on Debian 11. Another processor's wheel logs and serves under qemu-user-static. Their libraries
are built by make wheels (a long command): a wheel without them is skipped."""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
BUILD = os.path.abspath(os.environ.get("builddir", "build"))
OUT = BUILD + "/oldest/release"
sys.dont_write_bytecode = True
sys.path[:0] = [SRC + "/web/deploy/release", SRC + "/tests/fresh"]
import debian
import emulated
import programs
import project
import static_libraries
import wheels

GLIBC = re.compile(r"(libc|libm|libdl|librt|libpthread)\.so\.\d|ld-linux-[\w-]+\.so\.\d")
TESTS = ["api/tls.py", "api/hostile.py"]  # functions of libraries that the server replaces


def skip(why):
    print(f"oldest: skipped: {why}")
    sys.exit(77)


def check_needs(path, limit):
    said = subprocess.run(["readelf", "-hdVW", path], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
    needed, versions = re.findall(r"\(NEEDED\).*\[(.*)\]", said), re.findall(r"Name: GLIBC_([\d.]+) ", said)
    assert needed and all(map(GLIBC.fullmatch, needed)), (path, needed)
    newest = max(tuple(map(int, version.split("."))) for version in versions)
    assert newest <= limit and "DYN (" in said, (path, newest, said[:900])
    print(f"oldest: {os.path.basename(path)} needs at most GLIBC_{'.'.join(map(str, newest))}", flush=True)


def make(system, tools):
    """Returns the path of the wheel."""
    programs.make(BUILD, "install-man", "install-completion", "prefix=/usr", f"DESTDIR={OUT}/root")
    return OUT + "/wheels/" + wheels.make_server(system, OUT, BUILD, OUT + "/root", tools)[0]


def check_wheel(wheel, processor):
    limit = tuple(map(int, static_libraries.GLIBC.split(".")))
    with tempfile.TemporaryDirectory() as folder:
        with zipfile.ZipFile(wheel) as packed:
            packed.extractall(folder)
        program = folder + "/dptrack/bin/dptrack"
        for path in (program, *glob.glob(folder + "/dptrack/*.so*")):
            check_needs(path, limit)
        os.chmod(program, 0o755)
        if processor != os.uname().machine:
            emulated.check_wheel(folder, processor, BUILD + "/dptrack")
            return
        for test in TESTS:
            subprocess.run([sys.executable, f"{SRC}/tests/{test}"], check=True, env={**os.environ, "srcdir": SRC, "builddir": os.path.dirname(program)})


def main():
    systems = [static_libraries.System(processor) for processor in wheels.PROCESSORS]
    for system in (system for system in systems if system.missing()):
        print(f"oldest: {', '.join(system.missing())} for {system.target} not built in {system.folder}; make wheels builds them (15 minutes)")
    present = [system for system in systems if not system.missing()]
    if not present:
        skip("no wheel has its libraries")
    try:
        debian.require()
        if systems[0] in present:
            debian.base("11")
        tools = wheels.Tools(BUILD + "/oldest/tools")
    except (debian.Unavailable, project.Failure) as why:
        skip(" ".join(str(why).split()))
    shutil.rmtree(OUT + "/wheels", ignore_errors=True)
    os.makedirs(OUT + "/wheels")
    wheels.make_client(OUT + "/wheels")
    for system in present:
        check_wheel(make(system, tools), system.processor)
    if systems[0] in present:
        sys.exit(subprocess.run([SRC + "/tests/fresh/run", "11", "wheels", "--build", os.path.dirname(OUT)], check=False).returncode)


main()
