# SPDX-License-Identifier: Apache-2.0
"""Registers and spills of every kernel, as counted by ptxas for each architecture of the module (compiled if
necessary), compared with tests/gpu/registers.txt: one line per kernel, the maximum over its instances. `registers.py
--write` rewrites the file; read the difference before committing it. Other versions of nvcc than the table's count
differently: skipped."""
import glob
import os
import re
import subprocess
import sys

SOURCE = os.path.abspath(os.environ.get("srcdir") or os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
BUILD = os.path.abspath(os.environ.get("builddir") or os.path.join(SOURCE, "build"))
TABLE = os.path.join(SOURCE, "tests", "gpu", "registers.txt")
RELEASE = "V13.0.88"


def skip(why):
    print("registers: " + why)
    sys.exit(77)


def variable(name):
    """The value that configure set."""
    try:
        with open(os.path.join(BUILD, "Makefile"), encoding="utf-8") as f:
            found = re.search(r"^%s = (.*)$" % name, f.read(), re.M)
    except OSError:
        skip("nothing is built in " + BUILD)
    return found.group(1).strip() if found else ""


def sources():
    found = glob.glob(os.path.join(SOURCE, "trainer", "ops", "*", "*_cuda.cu"))
    return sorted(found + glob.glob(os.path.join(SOURCE, "trainer", "backends", "cuda", "*.cu")))


def said_of(path):
    """ptxas's output for a file's kernels when the module was built."""
    name = os.path.splitext(os.path.relpath(path, SOURCE))[0] + ".ptxas"
    with open(os.path.join(BUILD, name), encoding="utf-8") as f:
        return f.read()


ENTRY = re.compile(r"Compiling entry function '(\w+)' for 'sm_(\d+)'.*?(\d+) bytes spill stores, (\d+) bytes spill loads.*?"
                   r"Used (\d+) registers", re.S)


def kernels(path, text):
    """Returns {(file, kernel): {architecture: [instances, most registers, most bytes spilled]}}."""
    table = {}
    found = ENTRY.findall(text)
    names = subprocess.run(["c++filt", "-p", *[f[0] for f in found]], capture_output=True, text=True, check=True).stdout
    for name, (_, arch, stores, loads, registers) in zip(names.splitlines(), found):
        kernel = re.sub(r"<.*", "", name).split("::")[-1].split()[-1]
        entry = table.setdefault((os.path.basename(path), kernel), {}).setdefault(int(arch), [0, 0, 0])
        entry[0] += 1
        entry[1] = max(entry[1], int(registers))
        entry[2] = max(entry[2], int(stores) + int(loads))
    return table


def lines(table):
    yield "# file kernel instances; of each architecture: registers/bytes spilled, the most of them. nvcc " + RELEASE
    for (path, kernel), archs in sorted(table.items()):
        of = " ".join("sm_%d %d/%d" % (a, e[1], e[2]) for a, e in sorted(archs.items()))
        yield "%s %s %d; %s" % (path, kernel, max(e[0] for e in archs.values()), of)


def main():
    nvcc = variable("NVCC")
    if not nvcc or "@" in nvcc:
        skip("no nvcc")
    if RELEASE not in subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=False).stdout:
        skip("the table is of nvcc " + RELEASE)
    subprocess.run(["make", "-s", "-C", BUILD, "dptrain_cuda.la"], check=True)
    table = {}
    for path in sources():
        table.update(kernels(path, said_of(path)))
    now = list(lines(table))
    if "--write" in sys.argv:
        with open(TABLE, "w", encoding="utf-8") as f:
            f.write("\n".join(now) + "\n")
        return
    with open(TABLE, encoding="utf-8") as f:
        kept = f.read().splitlines()
    for line in sorted(set(kept) ^ set(now)):
        print(("now:       " if line in now else "committed: ") + line)
    print("registers: %d kernels in %d files" % (len(now) - 1, len(sources())))
    sys.exit(kept != now)


main()
