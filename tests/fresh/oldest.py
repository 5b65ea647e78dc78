#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheels run on the oldest system that they are for: they are made of this build folder's page and features, without documents. No ELF
file in them needs a newer glibc than its tag says or a library that is neither in the wheel nor of every system; dptrack passes tests of
what depends on its libraries; tests/fresh/run installs both on Debian 11, and another processor's on Debian 12 under qemu-user-static,
where the kernel lets it. Their libraries are built by make wheels (a long command): a wheel without them is skipped."""
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
import old_glibc
import programs
import project
import static_libraries
import wheels

SYSTEM = re.compile(r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+)\.so\.\d|ld-linux-[\w-]+\.so\.\d")  # of every glibc system
TRANSPORTS = re.compile(r"lib(ucp|ucs|uct|ucm|mpi)\.so\.\d+")
TESTS = ["api/tls.py", "api/hostile.py"]  # functions of libraries that the server replaces


def skip(why):
    print(f"oldest: skipped: {why}")
    sys.exit(77)


def check_needs(path, limit):
    said = subprocess.run(["readelf", "-hdVW", path], capture_output=True, text=True, check=True, env={**os.environ, "LC_ALL": "C"}).stdout
    needed, versions = re.findall(r"\(NEEDED\).*\[(.*)\]", said), re.findall(r"Name: GLIBC_([\d.]+) ", said)
    files = os.listdir(os.path.dirname(path))
    assert needed and all(SYSTEM.fullmatch(name) or TRANSPORTS.fullmatch(name) or name in files for name in needed), (path, needed)
    newest = max(tuple(map(int, version.split("."))) for version in versions)
    assert newest <= limit and "DYN (" in said, (path, newest, said[:900])
    print(f"oldest: {os.path.basename(path)} needs at most GLIBC_{'.'.join(map(str, newest))}", flush=True)


def make(system, tools):
    """Returns the path of the wheel."""
    programs.make(BUILD, "install-man", "install-completion", "prefix=/usr", f"DESTDIR={OUT}/root")
    return OUT + "/wheels/" + wheels.make_server(system, OUT, BUILD, OUT + "/root", tools)[0]


def check_files(wheel, folder):
    """Unpacks a wheel and checks each ELF file of it."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(folder)
    paths = [path for path in glob.glob(folder + "/dptrack*/**", recursive=True) if os.path.isfile(path) and open(path, "rb").read(4) == b"\x7fELF"]
    assert len(paths) > 2, paths
    for path in paths:
        check_needs(path, tuple(map(int, static_libraries.GLIBC.split("."))))


def check_server(wheel, processor):
    with tempfile.TemporaryDirectory() as folder:
        check_files(wheel, folder)
        program = folder + "/dptrack/bin/dptrack"
        os.chmod(program, 0o755)
        for test in TESTS if processor == os.uname().machine else []:
            subprocess.run([sys.executable, f"{SRC}/tests/{test}"], check=True, env={**os.environ, "srcdir": SRC, "builddir": os.path.dirname(program)})


def check_trainer(system, tools):
    name, packages = wheels.make_trainer(system, OUT, BUILD, OUT + "/root", tools)
    with tempfile.TemporaryDirectory() as folder:
        check_files(f"{OUT}/wheels/{name}", folder)
    print("oldest: dptrain's libraries: " + " ".join(package for package, _, _ in packages), flush=True)


def main():
    systems = [static_libraries.System(processor) for processor in wheels.PROCESSORS]
    lacking = {system: system.missing() for system in systems}
    if old_glibc.Linking(systems[0]).missing():
        lacking[systems[0]].append("what dptrain is linked with")
    for system in (system for system in systems if lacking[system]):
        print(f"oldest: {', '.join(lacking[system])} for {system.target} not built in {static_libraries.cache()}; make wheels builds them (20 minutes)")
    present = [system for system in systems if not lacking[system]]
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
        check_server(make(system, tools), system.processor)
    if systems[0] in present:
        check_trainer(systems[0], tools)
    runs = [subprocess.run([SRC + "/tests/fresh/run", "11" if system is systems[0] else "12", "wheels", "--processor", system.processor,
                            "--build", os.path.dirname(OUT)], check=False).returncode for system in present]
    sys.exit(any(code not in (0, 77) for code in runs))


main()
