# SPDX-License-Identifier: Apache-2.0
"""Programs of another processor, under qemu-user-static, in a root of their own."""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

import debian
import settings

sys.path.append(os.path.join(debian.TOP, "tests"))
import serving

ARCHITECTURES = {"aarch64": "arm64"}  # Debian's names
LOGS = """import dptrack
run = dptrack.init(experiment="far", run_name="first", code=False)
for step in range(1, 101):
    run.log({"train/loss": 1 / step}, step=step)
run.finish()
assert type(dptrack._run.library()).__module__ == "dptrack._library"
"""


def emulator(processor):
    """[] for this machine's processor; [its path] if it is installed; otherwise None."""
    if processor == os.uname().machine:
        return []
    found = shutil.which(f"qemu-{processor}-static")
    return [found] if found else None


def write_script(path, root, words):
    """Writes a program that runs the words, which are files of the root, in it."""
    with open(path, "w", encoding="ascii") as f:
        f.write(f'#!/bin/sh\nexec chroot {root} {" ".join(words)} "$@"\n')
    os.chmod(path, 0o755)
    return path


def unpack_python(architecture, folder):
    """Fills a root with Debian's Python, without running anything of it."""
    mirror = settings.apt_sources("bookworm")[0].split()[1]
    code, said = debian.output(["debootstrap", "--download-only", "--arch", architecture, "--variant=minbase", "--include=python3", "--keyring", settings.KEYRING,
                                "bookworm", folder, mirror])
    if code:
        raise debian.Unavailable(f"debootstrap {architecture} from {mirror}: " + said.rpartition("\n")[2])
    for path in glob.glob(folder + "/var/cache/apt/archives/*.deb"):
        subprocess.run(["dpkg-deb", "-x", path, folder], check=True)


def check_wheel(unpacked, processor, reader):
    """The client of an unpacked wheel logs a run, which the program `reader` of this machine lists; the server serves."""
    emulated = emulator(processor)
    if emulated is None:
        print(f"emulated: the wheel for {processor} did not run: no qemu-{processor}-static (Debian: qemu-user-static)")
        return
    root = debian.kept("python-" + processor, "", lambda folder: unpack_python(ARCHITECTURES[processor], folder))
    with tempfile.TemporaryDirectory(dir=root) as folder:
        here = "/" + os.path.basename(folder)
        shutil.copy2(emulated[0], folder + "/emulator")
        shutil.copytree(unpacked, folder + "/wheel")
        os.chmod(folder + "/wheel/dptrack/bin/dptrack", 0o755)
        python = write_script(folder + "/python", root, [here + "/emulator", "/usr/bin/python3.11"])
        subprocess.run([python, "-c", LOGS], check=True, timeout=300, env={"PYTHONPATH": here + "/wheel", "DPTRACK_RUNS_DIR": here + "/runs", "PATH": os.environ["PATH"]})
        listed = subprocess.run([reader, "ls", "far", "--logdir", folder + "/runs"], capture_output=True, text=True, timeout=60, check=False)
        assert "first" in listed.stdout and "finished" in listed.stdout, listed
        server = serving.Serving(write_script(folder + "/serve", root, [here + "/emulator", here + "/wheel/dptrack/bin/dptrack"]), "--logdir", here + "/runs",
                                 "--port", "0")
        assert server.stop() == 0, server.stderr()
        print(f"emulated: the wheel for {processor}: its client logged under {os.path.basename(emulated[0])}, its server served\n{listed.stdout}", end="")
