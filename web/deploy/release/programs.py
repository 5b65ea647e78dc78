# SPDX-License-Identifier: Apache-2.0
"""Builds the C programs once for all packages and installs them below OUT/root, with the features of the build folder
that calls and with flags that leave no path of this machine in them."""
import os
import re
import shlex
import shutil
import subprocess

import project

LIBDIR = "/usr/lib/x86_64-linux-gnu"
DOCUMENTS = "/usr/share/dptrack/docs"
CFLAGS = "-O2 -ffile-prefix-map=%s=. -Wformat -Werror=format-security"  # configure adds the defences
FLAGS = ["--prefix=/usr", "--libdir=" + LIBDIR]
TRAINERS = ["cuda", "onednn", "images", "packing", "ucx", "mpi"]  # features of dptrain alone
OPENED = {"EXPAT": "expat.h", "LIBPQ": "libpq-fe.h", "CJOSE": "cjose/cjose.h"}  # libraries that dptrack opens by name
KEPT = re.compile(r"--with(out)?-\w|(CC|NVCC|NVCCFLAGS|PKG_CONFIG_PATH)=")


def features(build):
    """The arguments of the calling build folder that choose features and compilers."""
    config = os.path.join(build, "config.status")
    said = project.run(["sh", config, "--config"]) if os.path.exists(config) else ""
    return [word for word in shlex.split(said) if KEPT.match(word)]


def configure(folder, arguments, environment=None):
    mark, wanted = os.path.join(folder, "arguments"), "\n".join(arguments)
    if os.path.exists(mark) and os.path.exists(os.path.join(folder, "Makefile")):
        with open(mark, encoding="utf-8") as f:
            if f.read() == wanted:
                return
    os.makedirs(folder, exist_ok=True)
    if not os.path.exists(os.path.join(project.TOP, "configure")):
        project.run(["sh", "./autogen.sh"], cwd=project.TOP)
    source = os.path.relpath(project.TOP, os.path.realpath(folder))
    project.run(["sh", source + "/configure", *arguments], cwd=folder, env={**(environment or os.environ), "CONFIG_SHELL": "/bin/sh"})
    with open(mark, "w", encoding="utf-8") as f:
        f.write(wanted)


def make(folder, *words):
    log = os.path.join(folder, "make.log")
    environment = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    with open(log, "a", encoding="utf-8") as f:
        done = subprocess.run(["make", f"-j{os.cpu_count()}", "CUDA_FOLDERS=", *words], cwd=folder, stdout=f,
                              stderr=subprocess.STDOUT, env=environment, check=False)
    if done.returncode:
        raise project.Failure(f"make {words[0]} failed (log: {log})")


def summary_line(folder, label):
    """What configure's summary says of a feature that is absent."""
    with open(os.path.join(folder, "config.log"), encoding="utf-8", errors="replace") as f:
        found = re.findall(rf"^ *{label} +((?:yes|no).*)$", f.read(), re.MULTILINE)
    return found[-1].removeprefix("no: ") if found else "unknown reason"


def make_documents(folder):
    """Makes the site of the documents; returns why it failed, or an empty text."""
    log = os.path.join(folder, "make.log")
    written = os.path.getsize(log) if os.path.exists(log) else 0
    try:
        make(folder, "docs")
        return ""
    except project.Failure:
        shutil.rmtree(os.path.join(folder, "site"), ignore_errors=True)  # an older one would be installed
        with open(log, encoding="utf-8", errors="replace") as f:
            f.seek(written)
            reasons = re.findall(r"^make docs: (.*)$", f.read(), re.MULTILINE)
        return (reasons or [f"make docs failed (log: {log})"])[-1]


def drop_unpacked(site):
    """Removes files of the site that are there as NAME.gz as well: the server reads only those. It looks for index.html."""
    for folder, _, names in os.walk(site):
        for name in names:
            if name + ".gz" in names and os.path.join(folder, name) != os.path.join(site, "index.html"):
                os.remove(os.path.join(folder, name))


def build(out, outer):
    """Returns the root with installed programs, and {part: why it is absent}."""
    folder, root = os.path.join(out, "c"), os.path.join(out, "root")
    configure(folder, [*features(outer), *FLAGS, "CFLAGS=" + CFLAGS % project.TOP])
    make(folder, "all")
    no_documents = make_documents(folder)
    shutil.rmtree(root, ignore_errors=True)
    make(folder, "install", "DESTDIR=" + os.path.abspath(root))
    drop_unpacked(root + DOCUMENTS)
    absent = {"the documents (/docs)": no_documents} if no_documents else {}
    if not os.path.exists(f"{root}{LIBDIR}/dptrack/dptrain_cuda.so"):
        absent["the CUDA module"] = summary_line(folder, "cuda backend")
    return root, absent


def build_for(system, out, native):
    """Builds dptrack and, unless the program is static, libdptrack.so for another system (static_libraries.py), with the page of the build
    folder native. Returns the folder in which they are."""
    folder, environment = os.path.join(out, system.target), dict(system.environment)
    words = [*system.configure_words(), *FLAGS, *(f"--with-{name}=no" for name in TRAINERS), *(word for word in features(native) if word == "--without-ui"),
             *(["--enable-static-program"] if system.is_static else [])]
    for name, header in OPENED.items():
        if os.path.exists(f"{system.include}/{header}"):
            words += [f"{name}_CFLAGS=-I{system.include}", f"{name}_LIBS= "]
    environment["LDFLAGS"] += " -Wl,-s"
    configure(folder, [*words, "CFLAGS=-g0 -fno-sanitize=undefined " + CFLAGS % project.TOP], environment)
    os.makedirs(folder + "/web/assets", exist_ok=True)
    shutil.copy2(native + "/web/assets/embed", folder + "/web/assets/embed")  # it runs here
    stamp = native + "/web/ui/dist.stamp"
    page = [f"UI_DIST_DIR={native}/web/ui/dist", "UI_DIST_STAMP=" + stamp, "-o", stamp] if os.path.exists(stamp) else []
    make(folder, "-o", "web/assets/embed", *page, "RELOCATION_FLAGS=-pie", "dptrack", *([] if system.is_static else ["libdptrack.la"]))  # packed ones need glibc 2.36
    return folder


def build_trainer(linking, out, native):
    """Builds dptrain and its modules with what old_glibc.py links, and with the features of the build folder native. Returns the folder in
    which they are."""
    folder, archives = os.path.join(out, "trainer"), os.path.join(out, "archives")
    linking.link_archives(archives)
    configure(folder, [*features(native), "--without-ui", *FLAGS, *linking.words(archives), "CFLAGS=" + CFLAGS % project.TOP])
    make(folder, "quickstart-trainer", linking.libraries_word())
    return folder


def hdf5_library(out):
    """The path of libhdf5, which dptrain opens by name, or an empty text where configure did not find it."""
    with open(os.path.join(out, "c", "config.h"), encoding="utf-8") as f:
        found = re.search(r'^#define HDF5_SONAME "(.*)"$', f.read(), re.MULTILINE)
    return f"{LIBDIR}/{found[1]}" if found else ""


def report_absent(command, absent):
    for part, reason in absent.items():
        print(f"{command}: without {part}: {reason}", flush=True)
