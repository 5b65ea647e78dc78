#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The wheels with small programs in place of the real ones: the same bytes each time, RECORD and metadata agree with the
content, the commands of an installed wheel become the program with all arguments and its exit code, and pip takes them from the
index of a release."""
import base64
import csv
import email
import glob
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

SRC = os.path.abspath(os.environ.get("srcdir", "."))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SRC, "web", "deploy", "release"))
import programs
import release
import wheel_file
import wheels

PROGRAM = b'#!/bin/sh\necho "$0 $* $DPTRAIN_CUDA_LIBS"\ntest "$1" != python || echo "$DPTRACK_PYTHON"\nexit 7\n'
OPENED = ["libcurl.so.4", "libhdf5_serial.so.103"]


class SmallTools:
    """In place of strip and patchelf."""

    def binary(self, path, search):
        with open(path, "rb") as f:
            return f.read(), 0o755

    searching = binary


def small_root(folder):
    shared = ("man/man1/%s.1", "bash-completion/completions/%s", "fish/vendor_completions.d/%s.fish", "zsh/site-functions/_%s")
    for path in (*("/usr/share/" + path % program for path in shared for program in ("dptrack", "dptrain")), "/dptrain", "/.libs/dptrain_cpu.so", "/dptrack", "/.libs/libdptrack.so", "/libcurl.so.4"):
        os.makedirs(os.path.dirname(folder + path), exist_ok=True)
        with open(folder + path, "wb") as f:
            f.write(PROGRAM)
    for name in ("index.html", "index.html.gz", "guides/ddp.html", "guides/ddp.html.gz", "pictures/a.png"):
        os.makedirs(os.path.dirname(f"{folder}{programs.DOCUMENTS}/{name}"), exist_ok=True)
        with open(f"{folder}{programs.DOCUMENTS}/{name}", "w", encoding="ascii") as f:
            f.write(name)
    return folder


def check_documents(path):
    """The site is next to the program's bin folder, packed files only once."""
    with zipfile.ZipFile(path) as wheel:
        names = {name for name in wheel.namelist() if name.startswith("dptrack/share/dptrack/docs/")}
    wanted = {"index.html", "index.html.gz", "guides/ddp.html.gz", "pictures/a.png"}
    assert names == {"dptrack/share/dptrack/docs/" + name for name in wanted}, names


def check_opened(path, folder):
    """Libraries that dptrain opens by name are next to it, and libhdf5's name is that of configure."""
    with zipfile.ZipFile(path) as wheel:
        assert set(wheel.namelist()) >= {"dptrack_trainer/bin/" + name for name in OPENED}, wheel.namelist()
    os.makedirs(folder + "/c")
    for line, wanted in ((f'#define HDF5_SONAME "{OPENED[1]}"', f"{programs.LIBDIR}/{OPENED[1]}"), ("/* #undef HDF5_SONAME */", "")):
        with open(folder + "/c/config.h", "w", encoding="ascii") as f:
            f.write(f"#define HAVE_GIF 1\n{line}\n")
        assert programs.hdf5_library(folder) == wanted, line


def check_absent_documents(folder):
    """Without the site's packages its reason is reported, and an older site is not packed."""
    os.makedirs(folder + "/site")
    with open(folder + "/Makefile", "w", encoding="ascii") as f:
        f.write("docs:\n\t@echo 'make docs: no network is here'; exit 1\n")
    assert programs.make_documents(folder) == "no network is here"
    assert not os.path.exists(folder + "/site")
    with open(folder + "/Makefile", "w", encoding="ascii") as f:
        f.write("docs:\n\tmkdir site\n")
    assert programs.make_documents(folder) == "" and os.path.isdir(folder + "/site")


def write_both(root, folder):
    os.makedirs(folder)
    for name, files in (("dptrack", wheels.server_files(root, root, SmallTools(), "linux_x86_64")),
                        ("dptrack_trainer", wheels.trainer_files(root, root, dict.fromkeys(OPENED, root + "/libcurl.so.4"), SmallTools()))):
        path = f"{folder}/{name}-{wheels.project.version()}-py3-none-linux_x86_64.whl"
        wheel_file.write(path, files, 1700000000)
        yield path


def check_record(path):
    """Each file of the archive is in RECORD with its digest and size."""
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        record = next(name for name in names if name.endswith(".dist-info/RECORD"))
        rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(wheel.read(record).decode()))}
        assert set(rows) == set(names) and len(names) == len(set(names)), set(rows) ^ set(names)
        for name in set(names) - {record}:
            data = wheel.read(name)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            assert rows[name] == ["sha256=" + digest, str(len(data))], name
        info = record[:-len("RECORD")]
        assert info.count("/") == 1, record
        return {name[len(info):]: wheel.read(name) for name in names if name.startswith(info)}


def check_metadata(server, trainer):
    said = email.message_from_bytes(server["METADATA"])
    with open(os.path.join(SRC, "configure.ac"), encoding="utf-8") as f:
        assert f"AC_INIT([dptrack], [{said['Version']}]" in f.read(), said["Version"]
    assert said["Name"] == "dptrack" and said["License-Expression"] == "Apache-2.0" and "# dptrack" in said.get_payload()
    assert said["Summary"] == wheels.project.SUMMARIES["dptrack"] and said["Author"], "each field has one line"
    assert (said["Provides-Extra"], said["Requires-Dist"].rpartition(" and ")[2]) == ("mcp", 'extra == "mcp"'), said["Requires-Dist"]
    said = email.message_from_bytes(trainer["METADATA"])
    wanted = said.get_all("Requires-Dist")
    assert said["Provides-Extra"] == "cuda" and len(wanted) == 4, wanted
    assert all('; extra == "cuda"' in line and "==" in line for line in wanted), wanted


def output(words, code, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "DPTRA", "PIP_"))}
    done = subprocess.run(words, capture_output=True, text=True, env={**env, **variables}, check=False)
    assert done.returncode == code, (words, done)
    return done.stdout.strip()


def check_client_wheel(folder):
    """It has the package alone."""
    name, bundled = wheels.make_client(folder)
    said = check_record(f"{folder}/{name}")
    with zipfile.ZipFile(f"{folder}/{name}") as wheel:
        names = set(wheel.namelist())
    assert b"Root-Is-Purelib: true\nTag: py3-none-any\n" in said["WHEEL"] and "dptrack/pure/records.py" in names and not bundled, said["WHEEL"]
    assert not [name for name in names if name.endswith((".so", ".a")) or "/bin/" in name or ".libs/" in name], names


def check_index(folder, pip):
    """pip finds the wheels in the index, and refuses one that is not that of the release."""
    place, version = folder + "/place", wheels.project.version()
    shutil.copytree(folder + "/first", place)
    shutil.copy(f"{folder}/dptrack-{version}-py3-none-any.whl", place)
    release.write_index(place)
    quiet = [pip, "download", "-q", "--no-deps", "--disable-pip-version-check", "-d", folder + "/fetched"]
    for words in (["--index-url", f"file://{place}/simple", "dptrack"], ["--index-url", f"file://{place}/simple", "dptrack-trainer"],
                  ["--no-index", "--find-links", place, "--require-hashes", "-r", place + "/hashes.txt"]):
        output([*quiet, *words], 0)
        assert len(os.listdir(folder + "/fetched")) == 1, os.listdir(folder + "/fetched")
        shutil.rmtree(folder + "/fetched")
    with open(glob.glob(place + "/dptrack-*-linux_x86_64.whl")[0], "ab") as f:
        f.write(b" ")
    output([*quiet, "--index-url", f"file://{place}/simple", "dptrack"], 1)
    output([*quiet, "--no-index", "--find-links", place, "--require-hashes", "-r", place + "/hashes.txt"], 1)


def check_installed(paths, folder):
    venv = folder + "/venv"
    made = subprocess.run([sys.executable, "-m", "venv", venv], capture_output=True, text=True, check=False)
    if made.returncode:
        print("skipped: no virtual environment: " + (made.stdout or made.stderr).strip().splitlines()[-1])
        sys.exit(77)
    output([venv + "/bin/pip", "install", "-q", "--no-deps", *paths], 0, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
    for platform, name in ((), os.path.basename(paths[0])), (("--platform", "macosx_11_0_arm64"), f"dptrack-{wheels.project.version()}-py3-none-any.whl"):
        output([venv + "/bin/pip", "download", "-q", "--no-deps", "--only-binary", ":all:", *platform, "--find-links", folder, "--find-links", os.path.dirname(paths[0]),
                "-d", folder + "/chosen", "dptrack"], 0, PIP_NO_INDEX="1", PIP_DISABLE_PIP_VERSION_CHECK="1")
        assert os.listdir(folder + "/chosen") == [name], "pip chooses the wheel that fits"
        os.remove(f"{folder}/chosen/{name}")
    packages = output([venv + "/bin/python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], 0)
    for words in ([venv + "/bin/dptrack"], [venv + "/bin/python", "-m", "dptrack"]):
        assert output([*words, "ls", "--x=a b"], 7) == f"{packages}/dptrack/bin/dptrack ls --x=a b", words
    assert os.path.dirname(output([venv + "/bin/dptrack", "python"], 7).split()[-1]) == venv + "/bin", "the Python of commands that are modules"
    assert output([venv + "/bin/dptrack", "python"], 7, DPTRACK_PYTHON="/mine").endswith("\n/mine")
    for words in ([venv + "/bin/dptrain"], [venv + "/bin/python", "-m", "dptrack_trainer"]):
        assert output([*words, "plan"], 7) == f"{packages}/dptrack_trainer/bin/dptrain plan", words
    for path in ("man/man1/dptrack.1", "man/man1/dptrain.1", "bash-completion/completions/dptrain", "zsh/site-functions/_dptrack"):
        assert os.path.exists(f"{venv}/share/{path}"), path
    os.makedirs(packages + "/nvidia/cudnn/lib")
    assert output([venv + "/bin/dptrain", "plan"], 7).endswith(f"plan {packages}/nvidia")
    assert output([venv + "/bin/dptrain", "plan"], 7, DPTRAIN_CUDA_LIBS="/mine").endswith("plan /mine")
    check_client(paths[0], venv)
    check_pure_client(folder, venv)
    check_index(folder, venv + "/bin/pip")


def check_client(wheel, venv):
    """The client built from source never removes the program of the wheel; the wheel replaces the client."""
    show, source = [venv + "/bin/pip", "show", "dptrack"], os.path.join(SRC, "tracker", "python")
    options = {"PIP_NO_INDEX": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONDONTWRITEBYTECODE": "1", "CFLAGS": "-O0"}
    said = subprocess.run([venv + "/bin/pip", "install", "-q", source], capture_output=True, text=True, env={**os.environ, **options}, check=False)
    lines = [line for line in said.stderr.splitlines() if "has the wheel dptrack" in line]
    assert said.returncode and len(lines) == 1 and "pip uninstall dptrack" in lines[0], said
    assert os.path.exists(venv + "/bin/dptrack"), "the program is kept"
    output([venv + "/bin/pip", "uninstall", "-q", "-y", "dptrack"], 0)
    output([venv + "/bin/pip", "install", "-q", source], 0, **options)
    client = output(show, 0, **options)
    assert f"Version: {wheels.project.version()}.dev0+client\n" in client and not os.path.exists(venv + "/bin/dptrack"), client
    output([venv + "/bin/pip", "install", "-q", "--no-deps", wheel], 0, **options)
    assert f"Version: {wheels.project.version()}\n" in output(show, 0, **options) and os.path.exists(venv + "/bin/dptrack")


def check_pure_client(folder, venv):
    """It records a run, and has no program."""
    output([venv + "/bin/pip", "install", "-q", "--no-deps", "--force-reinstall", f"{folder}/dptrack-{wheels.project.version()}-py3-none-any.whl"], 0, PIP_NO_INDEX="1",
           PIP_DISABLE_PIP_VERSION_CHECK="1")
    code = "import dptrack; run = dptrack.init(code=False); run.log({'x': 1}); run.finish(); print(dptrack._run.library().__module__, dptrack.__version__)"
    assert output([venv + "/bin/python", "-c", code], 0, DPTRACK_RUNS_DIR=folder + "/runs") == f"dptrack.pure {wheels.project.version()}"
    assert glob.glob(folder + "/runs/default/*/events.out.tfevents.*")
    output([venv + "/bin/dptrack", "serve"], 1, PATH=venv + "/bin")


def main():
    with tempfile.TemporaryDirectory() as folder:
        root = small_root(folder + "/root")
        programs.drop_unpacked(root + programs.DOCUMENTS)
        first = list(write_both(root, folder + "/first"))
        os.utime(root + "/dptrack", (0, time.time()))
        second = list(write_both(root, folder + "/second"))
        for a, b in zip(first, second):
            with open(a, "rb") as f, open(b, "rb") as g:
                assert f.read() == g.read(), os.path.basename(a)
        check_metadata(*map(check_record, first))
        check_documents(first[0])
        check_opened(first[1], folder + "/release")
        check_absent_documents(folder + "/absent")
        check_client_wheel(folder)
        check_installed(first, folder)
    print("wheels: the same bytes, their record, their commands")


main()
